//! Terminating signals: temporary folders are removed, outputs appear completely or not at all, then the
//! program dies of the signal. A limit on file sizes is not a signal here but an error of the failing
//! write.

use gradus::TempFolders;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;

/// Installs the handlers.
pub fn install_handlers(leftovers: &TempFolders) {
    // The failing write reports the error; the flag is never read.
    let _ = flag::register(SIGXFSZ, Arc::default());
    // Without the handler, a signal leaves temporary files.
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else {
        // Not an error: a signal then leaves temporary files, and nothing worse.
        return;
    };
    let leftovers = leftovers.clone();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            leftovers.clear();
            crate::progress::erase();
            if emulate_default_handler(signal).is_err() {
                std::process::abort();
            }
        }
    });
}
