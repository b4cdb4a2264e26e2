//! The kubelet's pod-resources service: which container holds which device.
//!
//! A client that lists (`client`), the messages (`messages`), and what they mean (`convert`).

pub mod client;
pub mod convert;
pub mod error;
pub mod messages;

pub use client::{Client, Limits};
pub use convert::{Answer, OwnPod, Rules, Seen, convert};
pub use error::{PodResourcesError, Reason};
