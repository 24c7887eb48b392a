//! Functions of explicit threads in C, C++ and Rust, and of signals. Threads have no row: their effects are those of
//! unknown code.

// table
const STARTS: &[&str] = &[
    "pthread_",
    "thrd_",
    "mtx_",
    "cnd_",
    "sem_",
    "_ZNSt6thread",
    "_ZNSt3__16thread",
    "_ZNSt18condition_variable",
    "_ZNSt13__future_base",
];

// Rust's mangled names contain the length of each part of the path.
// table
const PARTS: &[&str] = &["3std6thread", "3std3sys6thread"];

/// Returns true for functions that start, join and synchronise threads.
pub fn is_thread_function(symbol: &str) -> bool {
    PARTS.iter().any(|part| symbol.contains(part))
        || STARTS.iter().any(|start| symbol.starts_with(start))
}

// table
const SIGNALS: &[&str] = &[
    "signal",
    "bsd_signal",
    "sysv_signal",
    "__sysv_signal",
    "sigset",
    "sigaction",
    "raise",
];

/// Returns true for functions that install or call a handler of signals.
pub fn is_signal_function(symbol: &str) -> bool {
    SIGNALS.contains(&symbol)
}
