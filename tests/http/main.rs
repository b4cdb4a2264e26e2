//! The server over real sockets on loopback. Time limits here only end a test that hangs.

mod routes;
mod support;
