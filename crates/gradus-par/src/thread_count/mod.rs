//! Code whose results depend on the number of threads.

pub(crate) mod guards;
pub(crate) mod num_threads;
pub(crate) mod order_dependence;
pub(crate) mod queries;
pub(crate) mod sentinels;
pub(crate) mod serial_clones;
pub(crate) mod taint;
