//! The server over real sockets on loopback. Time limits here only end a test that hangs.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]

mod auth;
mod limits;
mod listen;
mod pki;
mod routes;
mod shutdown;
mod support;
mod tls;
