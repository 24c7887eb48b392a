//! Execution of programs: compiled modules, case pages with their runner and comparison, the pool, verdicts.

pub(crate) mod call_spec;
pub(crate) mod case_page;
pub(crate) mod compare;
pub(crate) mod compiled_module;
pub(crate) mod pool;
pub(crate) mod runner;
pub(crate) mod verdict;
