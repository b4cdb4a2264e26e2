//! The two versions of dcgm-exporter's configuration file, as they stand in the file.

use serde::Deserialize;
use serde_saphyr::Spanned;

/// What both versions have: read first, to learn which one it is.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) version: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Metrics {
    pub(super) file: Option<Spanned<String>>,
    pub(super) fields: Option<Vec<Spanned<MetricField>>>,
    #[serde(rename = "enableExporterMetrics")]
    pub(super) of_exporter: Option<Spanned<bool>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MetricField {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) prometheus_type: String,
    #[serde(default)]
    pub(super) help: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Server {
    pub(super) max_concurrent_scrapes: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DetectBindUnbind {
    pub(super) enabled: Option<Spanned<bool>>,
    pub(super) poll_interval: Option<Spanned<String>>,
}

/// How long DCGM keeps samples; the names differ between the versions.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Watch {
    #[serde(rename = "maxKeepAge")]
    pub(super) age: Option<Spanned<String>>,
    #[serde(rename = "maxKeepSamples")]
    pub(super) samples: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Retention {
    #[serde(rename = "maxAge")]
    pub(super) age: Option<Spanned<String>>,
    #[serde(rename = "maxSamples")]
    pub(super) samples: Option<Spanned<String>>,
}

/// `version: 1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V1 {
    #[serde(rename = "version")]
    _version: String,
    pub(super) metrics: Option<Spanned<Metrics>>,
    pub(super) collection: Option<V1Collection>,
    pub(super) sources: Option<V1Sources>,
    pub(super) server: Option<Server>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V1Sources {
    pub(super) dcgm: Option<V1Dcgm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V1Dcgm {
    pub(super) detect_bind_unbind: Option<DetectBindUnbind>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V1Collection {
    pub(super) interval: Option<Spanned<String>>,
    pub(super) retention: Option<Spanned<Retention>>,
    pub(super) watch_groups: Option<Vec<Spanned<V1WatchGroup>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V1WatchGroup {
    #[serde(default)]
    pub(super) name: String,
    pub(super) interval: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) fields: Vec<String>,
    pub(super) retention: Option<Spanned<Retention>>,
}

/// `version: 2`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2 {
    #[serde(rename = "version")]
    _version: String,
    pub(super) metrics: Option<Spanned<Metrics>>,
    pub(super) collections: Option<Spanned<Vec<Spanned<V2Collection>>>>,
    pub(super) sources: Option<V2Sources>,
    pub(super) server: Option<Server>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2Sources {
    pub(super) dcgm: Option<V2Dcgm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2Dcgm {
    pub(super) watch: Option<Spanned<Watch>>,
    pub(super) detect_bind_unbind: Option<DetectBindUnbind>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2Collection {
    #[serde(default)]
    pub(super) name: String,
    pub(super) every: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) metrics: V2Include,
    pub(super) sources: Option<V2CollectionSources>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2Include {
    #[serde(default)]
    pub(super) include: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2CollectionSources {
    pub(super) dcgm: Option<V2CollectionDcgm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct V2CollectionDcgm {
    pub(super) watch: Option<Spanned<Watch>>,
}
