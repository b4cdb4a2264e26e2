//! Both versions of the file in one shape, each value with its key and line.

use serde_saphyr::{Location, Spanned};

use super::super::typed::{Origin, Typed};
use super::schema::{DetectBindUnbind, Metrics, Retention, Server, V1, V2, Watch};

/// A place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) key: String,
}

impl Place {
    /// A place by its parts.
    pub(super) fn new(path: &str, location: Location, key: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: location.line(), key: key.into() }
    }

    /// As the start of a message.
    pub(super) fn origin(&self) -> Origin {
        Origin::File { path: self.path.clone(), line: self.line, key: self.key.clone() }
    }
}

/// A value with its place.
pub(super) fn typed<T: ToString>(path: &str, key: &str, value: &Spanned<T>) -> Typed {
    let origin = Place::new(path, value.referenced, key).origin();
    Typed { text: value.value.to_string(), origin }
}

/// How long DCGM is to keep samples.
#[derive(Debug)]
pub(super) struct Keep {
    pub(super) at: Place,
    pub(super) age: Option<Typed>,
    pub(super) samples: Option<Typed>,
}

/// Fields that are read at a time of their own.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) at: Place,
    pub(super) name: String,
    pub(super) every: Option<Typed>,
    /// The key of `every`, and that of the list of fields.
    pub(super) keys: (&'static str, &'static str),
    pub(super) fields: Vec<String>,
    pub(super) keep: Option<Keep>,
}

/// The file's content.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) metrics: Option<(Place, Metrics)>,
    /// The time between two passes for fields that no group names.
    pub(super) interval: Option<Typed>,
    pub(super) groups: Vec<Group>,
    /// Where `collections` stands empty.
    pub(super) no_collections: Option<Place>,
    pub(super) keep: Option<Keep>,
    pub(super) detect: Option<Typed>,
    pub(super) poll_interval: Option<Typed>,
    pub(super) max_concurrent_scrapes: Option<Typed>,
}

impl File {
    pub(super) fn from_v1(path: &str, v1: V1) -> Self {
        let mut file = Self::default();
        file.set_common(path, v1.metrics, v1.server);
        file.set_detection(path, v1.sources.and_then(|s| s.dcgm?.detect_bind_unbind));
        let collection = v1.collection.unwrap_or_default();
        file.interval = collection
            .interval
            .filter(|interval| !interval.value.trim().is_empty())
            .map(|interval| typed(path, "collection.interval", &interval));
        file.keep = collection.retention.map(|it| retention(path, "collection.retention", it));
        for (index, group) in collection.watch_groups.into_iter().flatten().enumerate() {
            let key = format!("collection.watchGroups[{index}]");
            let (at, group) = (Place::new(path, group.referenced, key.clone()), group.value);
            file.groups.push(Group {
                at,
                name: group.name,
                every: group.interval.map(|it| typed(path, &format!("{key}.interval"), &it)),
                keys: ("interval", "fields"),
                fields: group.fields,
                keep: group.retention.map(|it| retention(path, &format!("{key}.retention"), it)),
            });
        }
        file
    }

    pub(super) fn from_v2(path: &str, v2: V2) -> Self {
        let mut file = Self::default();
        file.set_common(path, v2.metrics, v2.server);
        let dcgm = v2.sources.and_then(|sources| sources.dcgm).unwrap_or_default();
        file.set_detection(path, dcgm.detect_bind_unbind);
        file.keep = dcgm.watch.map(|it| watch(path, "sources.dcgm.watch", it));
        let Some(collections) = v2.collections else { return file };
        if collections.value.is_empty() {
            file.no_collections = Some(Place::new(path, collections.referenced, "collections"));
        }
        for (index, collection) in collections.value.into_iter().enumerate() {
            let key = format!("collections[{index}]");
            let (at, it) = (Place::new(path, collection.referenced, key.clone()), collection.value);
            let keep = it.sources.and_then(|sources| sources.dcgm?.watch);
            file.groups.push(Group {
                at,
                name: it.name,
                every: it.every.map(|every| typed(path, &format!("{key}.every"), &every)),
                keys: ("every", "metrics.include"),
                fields: it.metrics.include,
                keep: keep.map(|it| watch(path, &format!("{key}.sources.dcgm.watch"), it)),
            });
        }
        file
    }

    fn set_common(
        &mut self,
        path: &str,
        metrics: Option<Spanned<Metrics>>,
        server: Option<Server>,
    ) {
        self.metrics = metrics.map(|it| (Place::new(path, it.referenced, "metrics"), it.value));
        self.max_concurrent_scrapes = server
            .and_then(|server| server.max_concurrent_scrapes)
            .map(|count| typed(path, "server.maxConcurrentScrapes", &count));
    }

    fn set_detection(&mut self, path: &str, detection: Option<DetectBindUnbind>) {
        let detection = detection.unwrap_or_default();
        let key = |name| format!("sources.dcgm.detectBindUnbind.{name}");
        self.detect = detection.enabled.map(|it| typed(path, &key("enabled"), &it));
        self.poll_interval =
            detection.poll_interval.map(|it| typed(path, &key("pollInterval"), &it));
    }
}

fn retention(path: &str, key: &str, it: Spanned<Retention>) -> Keep {
    Keep {
        at: Place::new(path, it.referenced, key),
        age: it.value.age.map(|age| typed(path, &format!("{key}.maxAge"), &age)),
        samples: it.value.samples.map(|count| typed(path, &format!("{key}.maxSamples"), &count)),
    }
}

fn watch(path: &str, key: &str, it: Spanned<Watch>) -> Keep {
    Keep {
        at: Place::new(path, it.referenced, key),
        age: it.value.age.map(|age| typed(path, &format!("{key}.maxKeepAge"), &age)),
        samples: it
            .value
            .samples
            .map(|count| typed(path, &format!("{key}.maxKeepSamples"), &count)),
    }
}
