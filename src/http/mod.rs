//! The server: hands out ready bytes. A scrape reads no GPU, renders nothing and waits for no lock.

pub mod app;
pub mod limits;
pub mod listen;
pub mod negotiate;
pub mod pages;
pub mod serve;
pub mod status;

mod activity;
mod compress;
mod connection;
mod landing;
mod routes;
mod slots;
mod transport;

pub use app::{App, Liveness, Nobody, Observe, Refusal};
pub use limits::Limits;
pub use listen::{ListenError, Listeners, bind, from_systemd};
pub use negotiate::{Encoding, Format};
pub use pages::PageStore;
pub use routes::router;
pub use serve::serve;
pub use status::{ConfigStatus, DeviceLine, Status};
