//! Messages between the driver and the compiling process.

pub(crate) mod codec;
pub(crate) mod reply;
pub(crate) mod request;
