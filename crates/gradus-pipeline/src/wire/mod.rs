//! Messages between the driver and the compiling process.

pub(crate) mod codec;
pub(crate) mod progress;
pub(crate) mod reply;
pub mod report;
pub(crate) mod request;
