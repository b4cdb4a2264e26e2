//! A body in the coding asked for, compressed off the async workers if it is not ready.

use std::sync::Arc;

use bytes::Bytes;

use crate::exposition::page::{Body, Page};
use crate::exposition::{Encoding, Format};

/// The body of `page` in `format`; text when the page has no other.
pub(super) fn body(page: &Page, format: Format) -> &Body {
    match format {
        Format::Text => &page.text,
        Format::OpenMetrics => page.openmetrics.as_ref().unwrap_or(&page.text),
    }
}

/// The bytes of one body, compressed now if this page's have not been yet; with the coding they
/// really have.
pub(super) async fn encoded(
    page: Arc<Page>,
    format: Format,
    encoding: Encoding,
) -> (Bytes, Encoding) {
    let ready = body(&page, format).ready(encoding);
    if let Some(bytes) = ready {
        return (bytes, encoding);
    }
    let identity = body(&page, format).encoded(Encoding::Identity);
    let made = tokio::task::spawn_blocking(move || body(&page, format).encoded(encoding)).await;
    // Only a runtime that is ending has no thread for it.
    made.map_or((identity, Encoding::Identity), |bytes| (bytes, encoding))
}
