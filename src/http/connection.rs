//! One connection: its requests to the routes, its ends to its time limits.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::header::{CONNECTION, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::ServiceExt;

use super::activity::{Activity, Spent};
use super::app::{App, Refusal};
use super::handshake;
use super::limits::{MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_HEADERS, MAX_STREAMS};
use super::routes::{self, Place};
use super::serve::told;
use super::slots::Slot;
use super::transport::{Pieces, Reporting};

/// How long an idle connection's polite end (GOAWAY, `close_notify`) may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Server {
    app: App,
    router: Router,
}

impl Server {
    pub(super) fn new(app: App) -> Self {
        Self { router: routes::router(app.clone()), app }
    }

    pub(super) fn refused(&self, why: Refusal) {
        tracing::debug!(why = why.label(), "client refused");
        self.app.observer.refused(why);
    }

    pub(super) fn shutdown_grace(&self) -> Duration {
        self.app.limits.shutdown_grace
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        activity: &Arc<Activity>,
    ) -> Response<Pieces> {
        let mut answering = activity.begin();
        let web = self.app.web.now();
        let mut response = match self.app.web.admit(&web, request.headers()).await {
            Err(why) => {
                self.refused(why);
                turned_away(why)
            }
            Ok(()) if has_large_body(&request) => too_large(request.version()),
            Ok(()) => {
                let Ok(response) = self.router.clone().oneshot(request.map(Body::new)).await;
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // `extend` would add a second value to a header that is there.
        for (name, value) in &web.headers {
            headers.insert(name, value.clone());
        }
        answering.hold(response.extensions_mut().remove::<Place>());
        response.map(|body| Pieces::new(body, answering))
    }
}

/// exporter-toolkit's answers, but for the realm, which RFC 7617 demands.
fn turned_away(why: Refusal) -> Response {
    if why == Refusal::RateLimit {
        return (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests\n").into_response();
    }
    let challenge = [(WWW_AUTHENTICATE, "Basic realm=\"nvml-exporter\"")];
    (StatusCode::UNAUTHORIZED, challenge, "Unauthorized\n").into_response()
}

fn too_large(version: Version) -> Response {
    let text = "no request has business with a body\n";
    let mut response = (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    // HTTP/2 ends streams, not connections, and forbids the header.
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A body of unknown length counts as large: nobody is going to read it to find out.
fn has_large_body(request: &Request<Incoming>) -> bool {
    request.body().size_hint().upper().is_none_or(|upper| upper > MAX_BODY_BYTES)
}

/// Serves `stream` until the client, a time limit or the shutdown ends it.
pub(super) async fn run(
    stream: TcpStream,
    slot: Slot,
    server: Arc<Server>,
    mut stopping: watch::Receiver<bool>,
) {
    // An answer goes out in one go; waiting for more to send would only delay it.
    let _ = stream.set_nodelay(true);
    let activity = &slot.activity;
    let Some(config) = server.app.web.now().tls.clone() else {
        return converse(stream, activity, &server, stopping, false).await;
    };
    let accepted = tokio::select! {
        accepted = handshake::accept(stream, config) => accepted,
        spent = activity.spent() => {
            if let Spent::Refused(why) = spent {
                server.refused(why);
            }
            return;
        }
        () = told(&mut stopping) => return,
    };
    match accepted {
        Ok(stream) => {
            let http2 = handshake::is_http2(&stream);
            converse(stream, activity, &server, stopping, http2).await;
        }
        // Who connects and leaves is a port check, not a failed handshake.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(error) => {
            tracing::debug!(%error, "no TLS");
            server.refused(Refusal::Handshake);
        }
    }
}

async fn converse<S>(
    stream: S,
    activity: &Arc<Activity>,
    server: &Arc<Server>,
    mut stopping: watch::Receiver<bool>,
    http2: bool,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (server, activity) = (server.clone(), activity.clone());
        async move { Ok::<_, Infallible>(server.answer(request, &activity).await) }
    });
    let builder = protocol(http2);
    if http2 {
        activity.multiplexes();
    }
    let io = TokioIo::new(Reporting::new(stream, activity.clone()));
    let mut http = pin!(builder.serve_connection(io, service));
    tokio::select! {
        ended = http.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(error, "connection ended early");
            }
        }
        spent = activity.spent() => match spent {
            Spent::Refused(why) => server.refused(why),
            Spent::Idle => {
                http.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(FAREWELL, http).await;
            }
        },
        () = told(&mut stopping) => {
            if activity.idle_since().is_none() {
                http.as_mut().graceful_shutdown();
                let _ = http.await;
            }
        }
    }
}

/// One protocol, known beforehand: guessing it from the first bytes would wait for them without
/// a time limit.
fn protocol(http2: bool) -> auto::Builder<TokioExecutor> {
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    builder
        .http1()
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        // `Activity` keeps the time.
        .header_read_timeout(None);
    builder
        .http2()
        .max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS);
    builder
}
