//! The log: one line an event on stderr, as text or as JSON.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Time, level, place, message, `key=value` pairs.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// Directives in the form of `RUST_LOG`: a level, or `target=level` pairs.
    pub directives: String,
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The directives cannot be read.
    #[error("log directives: {0}")]
    Directives(#[from] ParseError),
    /// The process has a log already.
    #[error("log: {0}")]
    Installed(#[from] TryInitError),
}

/// Whether directives can be read; the error says what is wrong with them.
pub fn check_directives(directives: &str) -> Result<(), ParseError> {
    EnvFilter::builder().parse(directives).map(drop)
}

/// Sets up the log of this process. Colours are for a terminal only.
pub fn install(settings: &LogSettings) -> Result<(), LogError> {
    subscriber(settings, io::stderr, io::stderr().is_terminal())?.try_init()?;
    Ok(())
}

fn subscriber<W>(settings: &LogSettings, writer: W, colours: bool) -> Result<Lines, ParseError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::builder().parse(&settings.directives)?;
    // A line that cannot be written is lost. Told of that, standard error would fail again, and
    // take down the thread that had something to say.
    let lines = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(writer);
    Ok(match settings.format {
        LogFormat::Text => Box::new(lines.with_ansi(colours).finish()),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_ansi(false).finish()),
    })
}

type Lines = Box<dyn Subscriber + Send + Sync>;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What two events write.
    fn written(format: LogFormat, directives: &str) -> String {
        let page = Page::default();
        let settings = LogSettings { format, directives: directives.to_owned() };
        let writer = page.clone();
        let lines = subscriber(&settings, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(lines, || {
            tracing::info!(gpu = 3, "found");
            tracing::debug!("looked");
        });
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_is_one_line_an_event_without_colours() {
        let text = written(LogFormat::Text, "info");
        assert!(
            text.ends_with(" INFO nvml_exporter::telemetry::log::tests: found gpu=3\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
        assert_eq!(written(LogFormat::Text, "debug").lines().count(), 2);
        assert_eq!(written(LogFormat::Text, "nvml_exporter=warn"), "");
    }

    #[test]
    fn json_is_one_object_an_event() {
        let text = written(LogFormat::Json, "info");
        let event: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(event["level"], "INFO");
        assert_eq!(event["message"], "found");
        assert_eq!(event["gpu"], 3);
        assert!(event["timestamp"].is_string());
    }

    #[test]
    fn directives_are_checked_without_a_log() {
        assert!(check_directives("info,hyper=off").is_ok());
        assert!(check_directives("a=b=c").is_err());
    }
}
