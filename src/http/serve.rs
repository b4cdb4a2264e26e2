//! Listeners to connections: accepting, and ending in time.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::app::{App, Refusal};
use super::connection::{self, Server};
use super::limits::{ACCEPT_PAUSE, REREAD_EVERY};
use super::listen::Listeners;
use super::slots::Slots;
use super::web_config::WebConfig;

/// Serves until `shutdown` resolves, then closes the listeners, lets answers under way end within
/// the grace time, cuts off the rest and returns.
///
/// Fails only if the runtime cannot take over a socket.
pub async fn serve(
    listeners: Listeners,
    app: App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    if app.web.is_tls() {
        tracing::info!("TLS is on");
    }
    let web = app.web.clone();
    let slots = Arc::new(Slots::new(app.limits.clone()));
    let server = Arc::new(Server::new(app));
    let (stop, stopping) = watch::channel(false);
    let mut loops = JoinSet::new();
    for socket in listeners.sockets {
        let socket = TcpListener::from_std(socket)?;
        loops.spawn(accept(socket, server.clone(), slots.clone(), stopping.clone()));
    }
    tokio::select! {
        () = shutdown => {}
        () = keep_fresh(web) => {}
    }
    stop.send_replace(true);
    while loops.join_next().await.is_some() {}
    Ok(())
}

async fn accept(
    socket: TcpListener,
    server: Arc<Server>,
    slots: Arc<Slots>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = told(&mut stopping) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // The client left before we came to it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot accept connections");
                }
                failing = true;
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        failing = false;
        let slot = tokio::select! {
            slot = slots.take() => slot,
            () = told(&mut stopping) => break,
        };
        match slot {
            Some(slot) => {
                let server = server.clone();
                connections.spawn(connection::run(stream, slot, server, stopping.clone()));
            }
            None => server.refused(Refusal::Connections),
        }
    }
    drop(socket);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(server.shutdown_grace(), ended).await.is_err() {
        tracing::info!(cut_off = connections.len(), "clients were too slow for the shutdown");
        connections.shutdown().await;
    }
}

/// Never resolves.
async fn keep_fresh(web: Arc<WebConfig>) {
    let mut ticks = tokio::time::interval(REREAD_EVERY);
    loop {
        ticks.tick().await;
        let web = web.clone();
        // A file system may hang; the next look waits for it, the server does not.
        let _ = tokio::task::spawn_blocking(move || web.refresh()).await;
    }
}

/// Resolves when it is time to stop; a sender that is gone says the same.
pub(super) async fn told(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}
