//! The process as a whole: builds the parts from a configuration, connects them, runs until told
//! to stop.

mod attribution;
mod dump;
pub mod inspect;
pub mod once;
mod reload;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{Config, Driver, HostLabelName, Listen};
use crate::exposition::{Encoding, Format, HostLabel, LabelScheme, Settings as PageSettings};
use crate::http::{self, App, Limits, Listeners, PageStore, Status, WebConfig};
use crate::nvml::{LoadError, Loader};
use crate::publisher::Publisher;
use crate::sampler::{Beat, Ended, PASS_DEADLINE, ProcRoot, Sampler, Settings as SamplerSettings};
use crate::telemetry::Telemetry;
use crate::telemetry::metrics::Build;
use reload::{Reloader, Source};

/// A reading older than this many intervals, and one pass deadline, is not served as if it were
/// fresh.
const STALE_INTERVALS: u32 = 3;

/// A loop that has not moved for this long, beside one interval, is stuck: neither of the two
/// ever waits for a GPU.
const LOOP_STUCK: Duration = Duration::from_secs(60);

/// Async workers: one to accept while the other writes a page. Scrapes hand out ready bytes.
const WORKERS: usize = 2;

/// Why the process cannot serve. Each is one line.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The counters file is wrong.
    #[error("{0}")]
    Counters(String),
    /// The simulator or the scenario asked for is not there.
    #[error(transparent)]
    Simulator(#[from] LoadError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] http::ListenError),
    /// The web configuration file is wrong.
    #[error(transparent)]
    Web(#[from] http::WebConfigError),
    /// The directory of the debugging dumps cannot be made.
    #[error("--dump-directory={directory}: cannot be made: {source}")]
    Dump {
        /// As given.
        directory: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A thread or the runtime cannot be started, or a signal cannot be caught.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// NVML stayed away for longer than allowed.
    #[error("NVML is not usable, and --exit-without-driver={} s is over", .0.as_secs())]
    NoDriver(Duration),
    /// A thread has panicked; what it said stands above in the log.
    #[error("the {0} thread has panicked; this is a defect of nvml-exporter, please report it")]
    Died(&'static str),
}

/// Serves until SIGTERM, SIGINT or SIGQUIT.
pub fn run(config: Config) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("http")
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve(config));
    // Nothing that is still running may hold up the end of the process.
    runtime.shutdown_background();
    result
}

async fn serve(config: Config) -> Result<(), ServeError> {
    let mut quit = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()]
        .into_iter()
        .map(signal)
        .collect::<Result<Vec<_>, _>>()?;
    loader(&config.driver).verify()?;
    let mut source = Source::new(&config);
    source.connect().await;
    let loaded = source.load().map_err(|errors| ServeError::Counters(errors.join("\n")))?;
    let web = match &config.web.config_file {
        Some(path) => Arc::new(WebConfig::load(path)?),
        None => Arc::new(WebConfig::plain()),
    };
    let listeners = listen(&config)?;
    let telemetry = build_telemetry(config.kubernetes.enabled);
    let selection = Arc::clone(&loaded.request.selection);
    let sampler = Arc::new(Sampler::start(
        SamplerSettings {
            loader: loader(&config.driver),
            interval: config.interval,
            request: loaded.request,
            give_up_after: config.exit_without_driver,
            proc_root: ProcRoot::default(),
            keep: config.xid_window.max(config.clock_events_window),
            kernel_log: config.kernel_log.clone(),
        },
        telemetry.clone(),
    )?);
    start_dumps(&config, &sampler)?;
    let bell = sampler.latest.bell();
    let users = attribution::start(&config.kubernetes, &selection, telemetry.clone(), bell)?;
    let pages = PageStore::default();
    let status = Arc::new(ArcSwap::from_pointee(Status::default()));
    let config_status = Arc::new(ArcSwap::from_pointee(loaded.status));
    let rendered = Arc::new(Beat::default());
    Publisher {
        attribution: users,
        latest: Arc::clone(&sampler.latest),
        settings: page_settings(&config),
        telemetry: telemetry.clone(),
        pages: pages.clone(),
        status: Arc::clone(&status),
        config: Arc::clone(&config_status),
        beat: Arc::clone(&rendered),
        vital: sampler.vital("render"),
    }
    .start()?;
    let app = App {
        liveness: liveness(&sampler, rendered, config.interval),
        observer: Arc::new(Scrapes(telemetry.clone())),
        openmetrics: config.openmetrics,
        web: Arc::clone(&web),
        ..App::new(pages, status, limits(&config))
    };
    let reloader = Reloader::new(source, Arc::clone(&sampler), telemetry, config_status, web)?;
    let reloading = tokio::spawn(reloader.run());
    let mut ended = None;
    let stop = async {
        tokio::select! {
            () = any(&mut quit) => tracing::info!("stopping"),
            why = sampler.ended() => ended = Some(why),
        }
    };
    http::serve(listeners, app, stop).await?;
    reloading.abort();
    sampler.stop();
    verdict(ended, &config)
}

fn verdict(ended: Option<Ended>, config: &Config) -> Result<(), ServeError> {
    match ended {
        None => Ok(()),
        Some(Ended::NoDriver) => {
            Err(ServeError::NoDriver(config.exit_without_driver.unwrap_or_default()))
        }
        Some(Ended::Died(thread)) => Err(ServeError::Died(thread)),
    }
}

fn start_dumps(config: &Config, sampler: &Sampler) -> Result<(), ServeError> {
    let Some(dump) = config.dump.clone() else { return Ok(()) };
    let directory = dump.directory.display().to_string();
    dump::start(dump, Arc::clone(&sampler.latest))
        .map_err(|source| ServeError::Dump { directory, source })
}

async fn any(signals: &mut [Signal]) {
    let waits = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    futures_util::future::select_all(waits).await;
}

fn build_telemetry(pods: bool) -> Telemetry {
    let build = Build {
        version: env!("CARGO_PKG_VERSION"),
        revision: option_env!("NVML_EXPORTER_REVISION").unwrap_or(""),
    };
    if pods { Telemetry::with_pods(build) } else { Telemetry::new(build) }
}

/// The library to load.
#[must_use]
pub fn loader(driver: &Driver) -> Loader {
    match driver {
        Driver::Installed => Loader::new(None),
        Driver::Library(path) => Loader::new(Some(path)),
        Driver::Simulated(scenario) => Loader::simulated(scenario, None::<&Path>),
    }
}

fn listen(config: &Config) -> Result<Listeners, http::ListenError> {
    if config.web.systemd_socket {
        return http::from_systemd();
    }
    let addresses: Vec<String> = config.web.listen.iter().map(address).collect();
    http::bind(&addresses)
}

fn address(listen: &Listen) -> String {
    match listen {
        Listen::Everywhere(port) => format!(":{port}"),
        Listen::At(address) => address.to_string(),
        Listen::Named(host, port) => format!("{host}:{port}"),
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        read_timeout: config.web.read_timeout,
        write_timeout: config.web.write_timeout,
        scrapes: config.web.max_concurrent_scrapes.get(),
        ..Limits::default()
    }
}

fn page_settings(config: &Config) -> PageSettings {
    PageSettings {
        labels: LabelScheme {
            host: config.host_label.value.clone(),
            host_label: match config.host_label.name {
                HostLabelName::Lower => HostLabel::Lower,
                HostLabelName::Upper => HostLabel::Upper,
                HostLabelName::Both => HostLabel::Both,
            },
            old_namespace: config.old_namespace,
            replace_blanks: config.replace_blanks,
        },
        attribution: attribution::scheme(&config.kubernetes),
        usage: config.kubernetes.usage.clone(),
        openmetrics: config.openmetrics,
        max_age: config.interval * STALE_INTERVALS + PASS_DEADLINE,
        xid_window: config.xid_window,
        clock_window: config.clock_events_window,
    }
}

fn liveness(sampler: &Arc<Sampler>, rendered: Arc<Beat>, interval: Duration) -> http::Liveness {
    let beats = [("sampling", Arc::clone(&sampler.beat)), ("rendering", rendered)];
    Arc::new(move || {
        for (name, beat) in &beats {
            let age = beat.age();
            if age > interval + LOOP_STUCK {
                return Err(format!("the {name} loop has not moved for {} s", age.as_secs()));
            }
        }
        Ok(())
    })
}

/// Counts scrapes in the exporter's own metrics.
struct Scrapes(Telemetry);

impl http::Observe for Scrapes {
    fn scraped(&self, format: Format, encoding: Encoding) {
        self.0.record_scrape(format, encoding);
    }

    fn refused(&self, why: http::Refusal) {
        self.0.record_rejected(why.label());
    }
}
