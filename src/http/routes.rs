//! The paths: what each answers.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::app::{App, Refusal};
use super::{compress, landing, negotiate};
use crate::exposition::Encoding;

const REGISTRY: HeaderName = HeaderName::from_static("x-registry-available");
const RELOAD: HeaderName = HeaderName::from_static("x-reload-in-progress");

/// A scrape's place among those answered at once. It travels in the response's extensions, so
/// that the connection can keep it until the last byte is out.
#[derive(Debug, Clone)]
pub(super) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

#[derive(Clone)]
struct Shared {
    app: App,
    scrapes: Arc<Semaphore>,
}

/// All routes over `app`.
pub(super) fn router(app: App) -> Router {
    let scrapes = Arc::new(Semaphore::new(app.limits.scrapes));
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/livez", get(livez))
        .route("/healthz", get(livez))
        .route("/-/healthy", get(livez))
        .route("/readyz", get(readyz))
        .route("/-/ready", get(readyz))
        .method_not_allowed_fallback(async || {
            (StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD only\n")
        })
        .fallback(async || (StatusCode::NOT_FOUND, "404 page not found\n"))
        .with_state(Shared { app, scrapes })
}

async fn index(State(Shared { app, .. }): State<Shared>) -> Response {
    let page = landing::page(&app.status.load(), Instant::now());
    ([(CONTENT_SECURITY_POLICY, landing::POLICY)], Html(page)).into_response()
}

/// Bytes that are ready, or nothing: no reading, no rendering, no waiting for either.
async fn metrics(
    State(Shared { app, scrapes }): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let Some(encoding) = negotiate::encoding(&headers) else {
        return (StatusCode::NOT_ACCEPTABLE, "identity, gzip or zstd only\n").into_response();
    };
    let Ok(permit) = scrapes.try_acquire_owned() else {
        app.observer.refused(Refusal::Scrapes);
        let body = "scrape concurrency limit reached\n";
        return (StatusCode::SERVICE_UNAVAILABLE, body).into_response();
    };
    let page = app.pages.current();
    let offered = app.openmetrics && page.openmetrics.is_some();
    let (format, content_type) = negotiate::format(&headers, offered);
    app.pages.want(format, encoding);
    let (bytes, encoding) = compress::encoded(page, format, encoding).await;
    if method != Method::HEAD {
        app.observer.scraped(format, encoding);
    }

    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    let vary = if app.openmetrics { "Accept, Accept-Encoding" } else { "Accept-Encoding" };
    headers.insert(VARY, HeaderValue::from_static(vary));
    if encoding != Encoding::Identity {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.label()));
    }
    response.extensions_mut().insert(Place { _permit: Arc::new(permit) });
    response
}

/// dcgm-exporter's probe: always 200, and silent about GPUs. Its registry is there when a scrape
/// has something to give; ours likewise.
async fn health(State(Shared { app, .. }): State<Shared>) -> Response {
    let there = !app.pages.current().text.is_empty();
    let (body, available) =
        if there { ("OK", "true") } else { ("OK - reload in progress", "false") };
    let mut response = body.into_response();
    response.headers_mut().insert(REGISTRY, HeaderValue::from_static(available));
    if !there || app.status.load().config.reloading {
        response.headers_mut().insert(RELOAD, HeaderValue::from_static("true"));
    }
    response
}

/// Fails only when a restart would help: never because of a GPU, whose evidence a restart hides.
async fn livez(State(Shared { app, .. }): State<Shared>) -> Response {
    match (app.liveness)() {
        Ok(()) => "ok\n".into_response(),
        Err(stuck) => (StatusCode::SERVICE_UNAVAILABLE, format!("{stuck}\n")).into_response(),
    }
}

async fn readyz(State(Shared { app, .. }): State<Shared>) -> Response {
    match app.status.load().not_ready(Instant::now()) {
        None => "ready\n".into_response(),
        Some(why) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
        }
    }
}
