//! Multi-instance GPUs: the profiles boards offer, and how instances are placed.

use crate::curve::Curve;

/// A GPU instance profile of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    /// `NVML_GPU_INSTANCE_PROFILE_*`: the index clients enumerate by.
    pub(crate) index: u32,
    /// The id the driver gives it (`nvidia-smi mig -lgip`).
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    /// Compute slices, of seven.
    pub(crate) slices: u32,
    /// Memory slices, of eight.
    pub(crate) size: u32,
    pub(crate) memory_mib: u64,
    pub(crate) multiprocessors: u32,
    pub(crate) copy_engines: u32,
    pub(crate) decoders: u32,
    pub(crate) jpegs: u32,
    pub(crate) ofas: u32,
    /// How many fit on an empty board.
    pub(crate) count: u32,
}

/// One row of a profile table, as the tables below write it.
type Row = (&'static str, u64, u32);

/// What profiles of one shape share on all boards: index, id, slices, size, copy engines, count.
const SHAPES: [(u32, u32, u32, u32, u32, u32); 7] = [
    (0, 19, 1, 1, 1, 7),
    (7, 20, 1, 1, 1, 1),
    (9, 15, 1, 2, 1, 4),
    (1, 14, 2, 2, 2, 3),
    (2, 9, 3, 4, 3, 2),
    (3, 5, 4, 4, 4, 1),
    (4, 0, 7, 8, 7, 1),
];

/// Name, memory in MiB and multiprocessors of each shape.
const TABLES: &[(&str, [Row; 7])] = &[
    (
        "a100-80gb",
        [
            ("1g.10gb", 9728, 14),
            ("1g.10gb+me", 9728, 14),
            ("1g.20gb", 19968, 14),
            ("2g.20gb", 19968, 28),
            ("3g.40gb", 40192, 42),
            ("4g.40gb", 40192, 56),
            ("7g.80gb", 80896, 98),
        ],
    ),
    (
        "h100-80gb",
        [
            ("1g.10gb", 9984, 16),
            ("1g.10gb+me", 9984, 16),
            ("1g.20gb", 20096, 26),
            ("2g.20gb", 20096, 32),
            ("3g.40gb", 40448, 60),
            ("4g.40gb", 40448, 64),
            ("7g.80gb", 81008, 132),
        ],
    ),
    (
        "gh200-96gb",
        [
            ("1g.12gb", 11264, 16),
            ("1g.12gb+me", 11264, 16),
            ("1g.24gb", 23552, 26),
            ("2g.24gb", 23552, 32),
            ("3g.48gb", 47872, 60),
            ("4g.48gb", 47872, 64),
            ("7g.96gb", 97280, 132),
        ],
    ),
    (
        "b200-180gb",
        [
            ("1g.23gb", 23_296, 18),
            ("1g.23gb+me", 23_296, 18),
            ("1g.45gb", 45_312, 30),
            ("2g.45gb", 45_312, 36),
            ("3g.90gb", 91_136, 70),
            ("4g.90gb", 91_136, 74),
            ("7g.180gb", 182_400, 148),
        ],
    ),
    (
        "h200-141gb",
        [
            ("1g.18gb", 16384, 16),
            ("1g.18gb+me", 16384, 16),
            ("1g.35gb", 33280, 26),
            ("2g.35gb", 33280, 32),
            ("3g.71gb", 71424, 60),
            ("4g.71gb", 71424, 64),
            ("7g.141gb", 143_104, 132),
        ],
    ),
];

/// The profiles of a board, smallest first.
pub(crate) fn profiles(table: &str) -> Option<[Profile; 7]> {
    let rows = &TABLES.iter().find(|(name, _)| *name == table)?.1;
    Some(std::array::from_fn(|i| {
        let (index, id, slices, size, copy_engines, count) = SHAPES[i];
        let (name, memory_mib, multiprocessors) = rows[i];
        let ampere = table.starts_with('a');
        let media = i == 1 || slices == 7;
        Profile {
            index,
            id,
            name,
            slices,
            size,
            memory_mib,
            multiprocessors,
            copy_engines,
            decoders: match slices {
                _ if !ampere => slices,
                1 => u32::from(i > 0),
                7 => 5,
                _ => slices.div_ceil(2),
            },
            jpegs: if ampere { u32::from(media) } else { slices },
            ofas: u32::from(media),
            count,
        }
    }))
}

impl Profile {
    /// Where an instance of this profile may start, most wanted first: the order in which the
    /// driver fills a board.
    pub(crate) fn starts(&self) -> &'static [u32] {
        match (self.slices, self.size) {
            (4 | 7, _) => &[0],
            (3, _) => &[4, 0],
            (2, _) => &[0, 2, 4],
            (_, 2) => &[0, 2, 4, 6],
            _ => &[0, 1, 2, 3, 4, 5, 6],
        }
    }

    /// The instance id that goes with a place. The driver numbers the nodes of a binary tree over
    /// the eight memory slices: 0 is the board, 1 and 2 its halves, 3 to 6 its quarters.
    pub(crate) fn instance_id(&self, start: u32) -> u32 {
        8 / self.size - 1 + start / self.size
    }
}

/// A GPU instance.
#[derive(Debug, Clone)]
pub(crate) struct GpuInstance {
    pub(crate) id: u32,
    pub(crate) profile: Profile,
    pub(crate) start: u32,
    pub(crate) compute: Vec<ComputeInstance>,
    /// Its share of the work: idle as laid out, see `Gpu::divide`.
    pub(crate) curve: Curve,
    /// Keeps its counters continuous: see `Gpu::change`.
    pub(crate) load_carry: f64,
}

/// A compute instance: what a MIG device handle stands for.
#[derive(Debug, Clone)]
pub(crate) struct ComputeInstance {
    pub(crate) id: u32,
    pub(crate) slices: u32,
    pub(crate) start: u32,
    /// Under which index `nvmlDeviceGetMigDeviceHandleByIndex` finds it.
    pub(crate) slot: u32,
}

/// How many MIG devices a board has at most.
pub(crate) const SLOTS: u32 = 7;

/// Lays out instances on a board.
///
/// Each word is a profile name, then optionally `:` and what compute instances it has (`1c+2c`, or
/// `-` for none; one over all slices if left out), then optionally `@` and the slot of its first.
pub(crate) fn layout(table: &str, words: &[&str]) -> Result<Vec<GpuInstance>, String> {
    let profiles = profiles(table).ok_or_else(|| format!("no table of MIG profiles: {table}"))?;
    let mut wanted = Vec::new();
    for word in words {
        wanted.push(Wish::parse(word, &profiles)?);
    }
    // Large instances have few places: they choose first.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse((wanted[i].profile.size, wanted[i].profile.slices)));
    let mut taken = 0u16;
    let mut slices = 0;
    let mut instances: Vec<(usize, GpuInstance)> = Vec::new();
    for i in order {
        let Wish { profile, .. } = &wanted[i];
        slices += profile.slices;
        let fits = |start: &&u32| taken & mask(**start, profile.size) == 0;
        let start = profile.starts().iter().find(fits).filter(|_| slices <= 7);
        let &start = start.ok_or_else(|| format!("no place left for {}", profile.name))?;
        taken |= mask(start, profile.size);
        let instance = GpuInstance {
            id: profile.instance_id(start),
            profile: *profile,
            start,
            compute: Vec::new(),
            curve: Curve::IDLE,
            load_carry: 0.0,
        };
        instances.push((i, instance));
    }
    instances.sort_by_key(|(_, instance)| instance.id);
    place_compute_instances(&mut instances, &wanted)?;
    Ok(instances.into_iter().map(|(_, instance)| instance).collect())
}

/// How many more instances of a profile fit beside those there are.
pub(crate) fn remaining(profile: &Profile, used: &[GpuInstance]) -> u32 {
    let mut taken = used.iter().fold(0, |m, i| m | mask(i.start, i.profile.size));
    let mut slices: u32 = used.iter().map(|i| i.profile.slices).sum();
    let mut more = 0;
    for &start in profile.starts() {
        let place = mask(start, profile.size);
        if taken & place == 0 && slices + profile.slices <= 7 && more < profile.count {
            taken |= place;
            slices += profile.slices;
            more += 1;
        }
    }
    more
}

fn mask(start: u32, size: u32) -> u16 {
    ((1u16 << size) - 1) << start
}

/// What one word of a layout asks for.
struct Wish {
    profile: Profile,
    compute: Vec<u32>,
    slot: Option<u32>,
}

impl Wish {
    fn parse(word: &str, profiles: &[Profile]) -> Result<Self, String> {
        let (rest, slot) = match word.split_once('@') {
            Some((rest, slot)) => {
                let slot = slot.parse().ok().filter(|s| *s < SLOTS);
                (rest, Some(slot.ok_or_else(|| format!("not a slot (0 to 6): {word}"))?))
            }
            None => (word, None),
        };
        let (name, compute) = rest.split_once(':').map_or((rest, None), |(n, c)| (n, Some(c)));
        let profile = profiles.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<&str> = profiles.iter().map(|p| p.name).collect();
            format!("no such MIG profile on this board: {name} (there are {})", names.join(", "))
        })?;
        let compute = match compute {
            None => vec![profile.slices],
            Some("-") => Vec::new(),
            Some(list) => list
                .split('+')
                .map(|c| c.strip_suffix('c').and_then(|n| n.parse().ok()).filter(|n| *n > 0))
                .collect::<Option<Vec<u32>>>()
                .ok_or_else(|| format!("not compute instances (like 1c+2c): {list}"))?,
        };
        if compute.iter().sum::<u32>() > profile.slices {
            return Err(format!("more compute slices than {name} has: {word}"));
        }
        Ok(Self { profile: *profile, compute, slot })
    }
}

/// Gives the compute instances their ids and slots: asked-for slots first, then the free ones.
fn place_compute_instances(
    instances: &mut [(usize, GpuInstance)],
    wanted: &[Wish],
) -> Result<(), String> {
    let mut free: Vec<u32> = (0..SLOTS).collect();
    for wish in wanted {
        if let Some(slot) = wish.slot {
            let at = free.iter().position(|s| *s == slot);
            free.remove(at.ok_or_else(|| format!("two instances in slot {slot}"))?);
        }
    }
    free.reverse();
    for (i, instance) in instances {
        let (mut start, mut asked) = (0, wanted[*i].slot);
        for (id, &slices) in (0..).zip(&wanted[*i].compute) {
            let slot = asked.take().or_else(|| free.pop()).ok_or("no slot left")?;
            instance.compute.push(ComputeInstance { id, slices, start, slot });
            start += slices;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(words: &[&str]) -> Vec<u32> {
        layout("a100-80gb", words).unwrap().iter().map(|i| i.id).collect()
    }

    #[test]
    fn seven_small_instances_are_numbered_as_the_driver_does() {
        assert_eq!(ids(&["1g.10gb"; 7]), [7, 8, 9, 10, 11, 12, 13]);
    }

    #[test]
    fn a_mixed_board_is_numbered_as_the_driver_does() {
        assert_eq!(ids(&["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]), [2, 3, 9, 10]);
        assert_eq!(ids(&["3g.40gb", "3g.40gb"]), [1, 2]);
        assert_eq!(ids(&["4g.40gb", "2g.20gb", "1g.10gb"]), [1, 5, 13]);
        assert_eq!(ids(&["7g.80gb"]), [0]);
    }

    #[test]
    fn slots_can_be_sparse_and_instances_shared() {
        let board = layout("a100-80gb", &["3g.40gb:1c+2c@2", "2g.20gb:-", "1g.10gb@6"]).unwrap();
        let slots: Vec<_> = board
            .iter()
            .flat_map(|i| i.compute.iter().map(move |c| (i.id, c.id, c.slot)))
            .collect();
        assert_eq!(slots, [(2, 0, 2), (2, 1, 0), (9, 0, 6)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(layout("a100-80gb", &["7g.80gb", "1g.10gb"]).is_err());
        assert!(layout("a100-80gb", &["4g.40gb", "4g.40gb"]).is_err());
        assert!(layout("a100-80gb", &["1g.18gb"]).unwrap_err().contains("1g.10gb"));
        assert!(layout("a100-80gb", &["1g.10gb:2c"]).is_err());
        assert!(layout("a100-80gb", &["1g.10gb@1", "1g.10gb@1"]).is_err());
    }
}
