//! Connections: accepted, answered, ended.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::app::App;
use super::limits::{ACCEPT_PAUSE, MAX_HEADER_BYTES, MAX_HEADERS};
use super::listen::Listeners;
use super::routes;

/// Serves until `shutdown` resolves, then closes the listeners, lets answers under way end within
/// the grace time, and returns.
pub async fn serve(
    listeners: Listeners,
    app: App,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let grace = app.limits.shutdown_grace;
    let router = routes::router(app);
    let (stop, stopping) = watch::channel(false);
    let mut loops = JoinSet::new();
    for socket in listeners.sockets {
        let socket = TcpListener::from_std(socket)?;
        loops.spawn(accept(socket, router.clone(), stopping.clone(), grace));
    }
    shutdown.await;
    stop.send_replace(true);
    while loops.join_next().await.is_some() {}
    Ok(())
}

async fn accept(
    socket: TcpListener,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    grace: Duration,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, router.clone(), stopping.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(socket);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, ended).await.is_err() {
        tracing::debug!("connections still open at shutdown are cut off");
    }
}

async fn connection(stream: TcpStream, router: Router, mut stopping: watch::Receiver<bool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move {
            let Ok(response) = router.oneshot(request.map(Body::new)).await;
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().max_buf_size(MAX_HEADER_BYTES).max_headers(MAX_HEADERS);
    builder.http1().header_read_timeout(None);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = served.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => served.as_mut().graceful_shutdown(),
    }
    if let Err(error) = served.await {
        tracing::debug!(error, "connection ended");
    }
}
