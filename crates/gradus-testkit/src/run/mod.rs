//! Execution of compiled programs: the runner, case pages, the pool.

pub(crate) mod c_compile;
pub(crate) mod call_spec;
pub(crate) mod case_page;
pub(crate) mod compiled_module;
pub(crate) mod pool;
pub(crate) mod runner;
