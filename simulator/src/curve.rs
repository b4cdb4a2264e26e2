//! Load over time, with its integral and its lagged form in closed form.
//!
//! Everything that moves in the simulator follows the load of a GPU. A load curve is a constant,
//! a few sine waves and one rectangular pulse train, chosen so that the sum stays within 0..1: then
//! nothing has to be clamped, and the integral (energy, byte counters) and the answer of a
//! first-order lag (temperature, memory) are exact.

use std::f64::consts::TAU;

/// The kinds of work a scenario can put on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// Long steps at high load, with short dips for checkpoints.
    Training,
    /// Middling load that swings within the hour.
    Inference,
    /// Jobs with pauses between them.
    Batch,
    /// Nothing runs.
    Idle,
    /// As loaded as it gets.
    Full,
}

#[derive(Debug, Clone, Copy)]
struct Wave {
    amplitude: f64,
    omega: f64,
    phase: f64,
}

#[derive(Debug, Clone, Copy)]
struct Pulse {
    height: f64,
    period: f64,
    /// The part of the period in which the pulse is on.
    duty: f64,
    shift: f64,
}

/// Load over time, between 0 and 1.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    base: f64,
    waves: [Wave; 3],
    pulse: Pulse,
}

impl Curve {
    /// No load at all.
    pub(crate) const IDLE: Self = Self {
        base: 0.0,
        waves: [Wave { amplitude: 0.0, omega: 0.0, phase: 0.0 }; 3],
        pulse: Pulse { height: 0.0, period: 1.0, duty: 0.5, shift: 0.0 },
    };

    /// The curve of some work. GPUs with the same `job` move together, `seed` tells them apart.
    pub(crate) fn new(work: Work, job: u64, seed: u64) -> Self {
        let (base, amplitudes, height, period, duty) = match work {
            Work::Training => (0.84, [0.05, 0.03, 0.02], -0.6, 620.0, 0.06),
            Work::Inference => (0.42, [0.22, 0.08, 0.05], 0.06, 90.0, 0.5),
            Work::Batch => (0.07, [0.03, 0.02, 0.01], 0.78, 900.0, 0.6),
            Work::Idle => (0.0, [0.0; 3], 0.0, 600.0, 0.5),
            Work::Full => (0.97, [0.01, 0.01, 0.005], 0.0, 600.0, 0.5),
        };
        let periods = [1_740.0, 97.0, 13.0];
        let mut waves = [Wave { amplitude: 0.0, omega: 0.0, phase: 0.0 }; 3];
        for (i, wave) in waves.iter_mut().enumerate() {
            let stretch = 0.9 + 0.2 * unit(seed, 10 + i as u64);
            *wave = Wave {
                amplitude: amplitudes[i],
                omega: TAU / (periods[i] * stretch),
                phase: TAU * unit(seed, 20 + i as u64),
            };
        }
        let shift = period * unit(job, 30);
        Self { base, waves, pulse: Pulse { height, period, duty, shift } }
    }

    /// The load at a time.
    pub(crate) fn value(&self, t: f64) -> f64 {
        self.base
            + self.waves.iter().map(|w| w.amplitude * (w.omega * t + w.phase).sin()).sum::<f64>()
            + self.pulse.value(t)
    }

    /// The integral of the load from 0 to a time: seconds of full load.
    pub(crate) fn integral(&self, t: f64) -> f64 {
        let waves = self
            .waves
            .iter()
            .filter(|w| w.omega > 0.0)
            .map(|w| w.amplitude / w.omega * (w.phase.cos() - (w.omega * t + w.phase).cos()));
        self.base * t + waves.sum::<f64>() + self.pulse.integral(t)
    }

    /// The load as seen through a first-order lag with time constant `tau`, in steady state.
    pub(crate) fn lagged(&self, t: f64, tau: f64) -> f64 {
        let waves = self.waves.iter().map(|w| {
            let lag = w.omega * tau;
            w.amplitude / lag.mul_add(lag, 1.0).sqrt() * (w.omega * t + w.phase - lag.atan()).sin()
        });
        self.base + waves.sum::<f64>() + self.pulse.lagged(t, tau)
    }
}

impl Pulse {
    /// Whole periods before `t`, and how far into the current one `t` is.
    fn split(&self, t: f64) -> (f64, f64) {
        let t = t + self.shift;
        let whole = (t / self.period).floor();
        (whole, t - whole * self.period)
    }

    fn value(&self, t: f64) -> f64 {
        if self.split(t).1 < self.duty * self.period { self.height } else { 0.0 }
    }

    fn integral(&self, t: f64) -> f64 {
        let on = self.duty * self.period;
        let from_shifted_zero = |t: f64| {
            let (whole, rest) = self.split(t);
            whole * on + rest.min(on)
        };
        self.height * (from_shifted_zero(t) - from_shifted_zero(0.0))
    }

    fn lagged(&self, t: f64, tau: f64) -> f64 {
        let on = self.duty * self.period;
        let rise = (-on / tau).exp();
        let fall = (-(self.period - on) / tau).exp();
        let at_start = (1.0 - rise) * fall / (1.0 - rise * fall);
        let at_end = 1.0 - (1.0 - at_start) * rise;
        let rest = self.split(t).1;
        let level = if rest < on {
            1.0 - (1.0 - at_start) * (-rest / tau).exp()
        } else {
            at_end * (-(rest - on) / tau).exp()
        };
        self.height * level
    }
}

/// Mixes a seed with a number (`splitmix64`).
pub(crate) fn mix(seed: u64, salt: u64) -> u64 {
    let mut z = seed.wrapping_add(salt.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number in 0..1 from a seed.
pub(crate) fn unit(seed: u64, salt: u64) -> f64 {
    (mix(seed, salt) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Work; 5] = [Work::Training, Work::Inference, Work::Batch, Work::Idle, Work::Full];

    #[test]
    fn load_stays_within_bounds() {
        for work in ALL {
            for seed in 0..20 {
                let curve = Curve::new(work, 7, seed);
                for step in 0..5_000 {
                    let load = curve.value(f64::from(step) * 3.7);
                    assert!((0.0..=1.0).contains(&load), "{work:?}: {load}");
                }
            }
        }
    }

    #[test]
    fn the_integral_is_that_of_the_value() {
        for work in ALL {
            let curve = Curve::new(work, 7, 3);
            let (mut sum, step) = (0.0, 0.01);
            for i in 0..200_000 {
                let t = f64::from(i) * step;
                sum += curve.value(t + step / 2.0) * step;
                if i % 20_000 == 0 {
                    let exact = curve.integral(t + step);
                    assert!((exact - sum).abs() < 0.05, "{work:?} at {t}: {exact} {sum}");
                }
            }
        }
    }

    #[test]
    fn the_lagged_load_solves_the_lag_equation() {
        let (tau, step) = (40.0, 0.01);
        for work in ALL {
            let curve = Curve::new(work, 7, 3);
            let mut level = curve.lagged(0.0, tau);
            for i in 0..200_000 {
                let t = f64::from(i) * step;
                level += (curve.value(t) - level) / tau * step;
            }
            let exact = curve.lagged(2_000.0, tau);
            assert!((exact - level).abs() < 1e-3, "{work:?}: {exact} {level}");
        }
    }

    #[test]
    fn seeds_tell_curves_apart() {
        let (a, b) = (Curve::new(Work::Training, 1, 1), Curve::new(Work::Training, 1, 2));
        assert!((a.value(100.0) - b.value(100.0)).abs() > 1e-6);
    }
}
