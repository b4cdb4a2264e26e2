//! The paths: what each answers.

use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use super::app::App;
use super::landing;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const REGISTRY: HeaderName = HeaderName::from_static("x-registry-available");
const RELOAD: HeaderName = HeaderName::from_static("x-reload-in-progress");

/// All routes over `app`.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/livez", get(livez))
        .route("/healthz", get(livez))
        .route("/-/healthy", get(livez))
        .route("/readyz", get(readyz))
        .route("/-/ready", get(readyz))
        .layer(middleware::from_fn(nosniff))
        .with_state(app)
}

async fn nosniff(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

async fn index(State(app): State<App>) -> Html<String> {
    Html(landing::page(&app.status.load(), Instant::now()))
}

async fn metrics(State(app): State<App>) -> Response {
    let page = app.pages.current();
    ([(CONTENT_TYPE, TEXT)], page.text.identity.clone()).into_response()
}

/// dcgm-exporter's probe: always 200, and silent about GPUs. Its registry is there when a scrape
/// has something to give; ours likewise.
async fn health(State(app): State<App>) -> Response {
    let yes = HeaderValue::from_static("true");
    let there = !app.pages.current().text.identity.is_empty();
    let reloading = app.status.load().config.reloading || !there;
    let body = if there { "OK" } else { "OK - reload in progress" };
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(REGISTRY, HeaderValue::from_static(if there { "true" } else { "false" }));
    if reloading {
        headers.insert(RELOAD, yes);
    }
    response
}

/// Fails only when a restart would help: never because of a GPU, whose evidence a restart hides.
async fn livez(State(app): State<App>) -> Response {
    match (app.liveness)() {
        Ok(()) => "ok\n".into_response(),
        Err(stuck) => (StatusCode::SERVICE_UNAVAILABLE, format!("{stuck}\n")).into_response(),
    }
}

async fn readyz(State(app): State<App>) -> Response {
    match app.status.load().not_ready(Instant::now()) {
        None => "ready\n".into_response(),
        Some(why) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
        }
    }
}
