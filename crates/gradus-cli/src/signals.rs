//! Signals that end the program: what lies in scratch folders goes first, outputs appear whole or not
//! at all, then the program dies of the signal as any other. A limit on the size of files is not a
//! signal here but an error of the write that meets it.

use gradus::Leftovers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;

/// Watches from now on.
pub fn watch(leftovers: &Leftovers) {
    // Whoever writes sees the error; nobody asks the flag.
    let _ = flag::register(SIGXFSZ, Arc::default());
    // Without it a signal leaves temporary files, and nothing worse.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        // Not an error: a signal leaves temporary files then, and nothing worse.
        return;
    };
    let leftovers = leftovers.clone();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            leftovers.clear();
            if emulate_default_handler(signal).is_err() {
                std::process::abort();
            }
        }
    });
}
