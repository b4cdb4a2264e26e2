//! Snapshot to bytes. The only module that knows the text formats.
//!
//! A page is made of five parts in this order, each family once: the rows of the selection, the
//! families that say what is there (`inventory`), who holds it (`holders`), how fresh and complete
//! the readings are (`health`), and the process's own metrics (`telemetry`).

mod device;
mod families;
pub mod format;
mod happened;
mod health;
mod holders;
mod inventory;
mod labels;
pub mod page;
mod render;
mod roster;
pub mod scheme;
mod sharing;
mod split;
mod text;
mod usage;
mod usage_accounting;

pub use format::{Encoding, Format};
pub use page::{Body, Page};
pub use render::Renderer;
pub use scheme::{AttributionScheme, HostLabel, LabelScheme, Settings, Show};
pub use split::is_divided;
