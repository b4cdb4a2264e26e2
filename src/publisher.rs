//! The thread that turns every snapshot into a page, once.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;

use crate::attribution::Attribution;
use crate::exposition::{Renderer, Settings};
use crate::http::{ConfigStatus, DeviceLine, PageStore, Status};
use crate::sampler::snapshot::{Gpu, Library, Snapshot, Status as GpuStatus};
use crate::sampler::{Beat, Latest, Vital};
use crate::telemetry::Telemetry;

/// A page is made anew at least this often, so that ages and staleness stay true when no new
/// snapshot comes.
pub const RENDER_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// What the publisher works with.
#[derive(Debug)]
pub struct Publisher {
    /// Where snapshots come from.
    pub latest: Arc<Latest<Snapshot>>,
    /// Who uses the devices. Shares its bell with `latest`.
    pub attribution: Arc<Latest<Attribution>>,
    /// How pages look.
    pub settings: Settings,
    /// What the exporter says of itself.
    pub telemetry: Telemetry,
    /// Where pages go.
    pub pages: PageStore,
    /// Where the landing page and the probes look.
    pub status: Arc<ArcSwap<Status>>,
    /// The configuration in use, kept by the reloader.
    pub config: Arc<ArcSwap<ConfigStatus>>,
    /// Shows that the thread moves.
    pub beat: Arc<Beat>,
    /// Tells when it has panicked.
    pub vital: Vital,
}

impl Publisher {
    /// Starts the thread. It ends with the process.
    pub fn start(self) -> std::io::Result<()> {
        thread::Builder::new().name("render".into()).spawn(move || self.run())?;
        Ok(())
    }

    fn run(self) {
        let mut renderer = Renderer::default();
        let (mut last_pass, mut passes) = (None, 0);
        loop {
            let rings = self.latest.bell().rings();
            let (seen, snapshot) = self.latest.get();
            let (_, attribution) = self.attribution.get();
            if snapshot.is_decided() {
                last_pass = Some(instant(snapshot.taken));
                passes = seen;
            }
            let now = SystemTime::now();
            let page =
                renderer.render((&snapshot, &attribution), &self.settings, &self.telemetry, now);
            self.pages.publish(page);
            self.status.store(Arc::new(self.status_of(&snapshot, last_pass, passes)));
            self.beat.beat();
            self.latest.bell().wait(rings, RENDER_AT_LEAST_EVERY);
        }
    }

    fn status_of(&self, snapshot: &Snapshot, last_pass: Option<Instant>, passes: u64) -> Status {
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            simulated: match &snapshot.library {
                Library::Up(facts) => facts.simulated.clone(),
                _ => None,
            },
            library: library_line(&snapshot.library),
            devices: snapshot.gpus.iter().flat_map(device_lines).collect(),
            last_pass,
            passes,
            stale_after: Some(self.settings.max_age),
            config: (**self.config.load()).clone(),
        }
    }
}

/// The wall clock can be set; an instant cannot, and both are needed.
fn instant(at: SystemTime) -> Instant {
    let now = Instant::now();
    now.checked_sub(at.elapsed().unwrap_or_default()).unwrap_or(now)
}

fn library_line(library: &Library) -> String {
    match library {
        Library::Starting => "NVML is being loaded".to_owned(),
        Library::Up(facts) => {
            format!("NVML {} on driver {}", facts.nvml_version, facts.driver_version)
        }
        Library::Down { detail, .. } => format!("NVML is down: {detail}"),
    }
}

fn device_lines(gpu: &Gpu) -> Vec<DeviceLine> {
    let identity = &gpu.identity;
    let (up, state) = match gpu.status {
        GpuStatus::Up => (true, "up"),
        GpuStatus::Starting => (false, "starting"),
        GpuStatus::Down(reason) => (false, reason),
    };
    let line = |name, uuid: &str| DeviceLine {
        name,
        model: identity.model.clone(),
        uuid: uuid.to_owned(),
        up,
        state: state.to_owned(),
    };
    let mut lines = vec![line(format!("GPU {}", identity.index), &identity.uuid)];
    for instance in gpu.reading.iter().flat_map(|reading| &reading.instances) {
        let instance = &instance.identity;
        let name =
            format!("GPU {} / {} {}", identity.index, instance.profile, instance.gpu_instance);
        lines.push(line(name, instance.uuids.first().map_or("", |(_, uuid)| uuid)));
    }
    lines
}
