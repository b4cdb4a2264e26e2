//! `once`: one page on standard output, for cron, debugging and support bundles.

use std::time::{Instant, SystemTime};

use super::attribution::poll_settings;
use super::inspect::{Verdict, look_for};
use super::reload::Source;
use super::{ServeError, build_telemetry, page_settings};
use crate::attribution::{Attribution, poller};
use crate::config::Config;
use crate::exposition::{Encoding, Renderer};

/// The page that a scrape would get once each GPU has been read twice, so that rates are there.
/// The kubelet is asked once; labels that the API server would give stay empty.
pub fn once(config: &Config) -> Result<(String, Verdict), ServeError> {
    let mut source = Source::new(config);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(source.connect());
    let loaded = source.load().map_err(|errors| ServeError::Counters(errors.join("\n")))?;
    let kubernetes = &config.kubernetes;
    let telemetry = build_telemetry(kubernetes.enabled);
    let snapshot = look_for(config, loaded.request, telemetry.clone())?;
    let mut attribution = Attribution::default();
    if kubernetes.enabled || kubernetes.hpc_job_mapping.is_some() {
        let asked = Instant::now();
        match poller::look(&poll_settings(kubernetes)) {
            Ok((found, seen)) => {
                attribution = found;
                telemetry.record_poll(asked.elapsed(), seen.pods);
            }
            Err(error) => {
                tracing::error!("pods: {error}");
                telemetry.record_poll_failure(asked.elapsed(), error.reason.label());
            }
        }
    }
    let settings = page_settings(config);
    let now = SystemTime::now();
    let page = Renderer::default().render((&snapshot, &attribution), &settings, &telemetry, now);
    let bytes = page.text.encoded(Encoding::Identity);
    let read = snapshot.gpus.iter().any(|gpu| gpu.reading.is_some());
    let verdict = if read { Verdict::Fine } else { Verdict::NothingHere };
    Ok((String::from_utf8_lossy(&bytes).into_owned(), verdict))
}
