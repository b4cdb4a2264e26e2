//! stub
#![allow(missing_docs)]
pub mod selector;
pub use selector::DeviceSelector;
