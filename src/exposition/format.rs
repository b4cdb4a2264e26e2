//! The formats and content codings in which a page is handed out.

/// An exposition format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `text/plain; version=0.0.4`.
    Text,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Text, Self::OpenMetrics];

    /// The label value.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::OpenMetrics => "openmetrics",
        }
    }
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// As rendered.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// Every coding.
    pub const ALL: [Self; 3] = [Self::Identity, Self::Gzip, Self::Zstd];

    /// The label value, and the token of `Content-Encoding`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}
