//! The server: hands out ready bytes. A scrape reads no GPU, renders nothing and waits for no lock.

pub mod app;
pub mod limits;
pub mod listen;
pub mod negotiate;
pub mod pages;
pub mod serve;
pub mod status;
pub mod web_config;

mod activity;
mod auth;
mod client_cert;
mod compress;
mod connection;
mod files;
mod handshake;
mod landing;
mod rate_limit;
mod routes;
mod slots;
mod tls;
mod transport;
mod web_file;

pub use app::{App, Liveness, Nobody, Observe, Refusal};
pub use limits::Limits;
pub use listen::{ListenError, Listeners, bind, from_systemd};
pub use pages::PageStore;
pub use serve::serve;
pub use status::{ConfigStatus, DeviceLine, Status};
pub use web_config::{WebConfig, WebConfigError};
