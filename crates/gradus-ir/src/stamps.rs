//! Stamps of contents: numbers that no two different contents of this process share.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stamp. A copy has the number of the original until either is renewed.
#[derive(Clone, Debug)]
pub(crate) struct Stamp(Cell<u64>);

impl Default for Stamp {
    fn default() -> Self {
        Stamp(Cell::new(next()))
    }
}

impl Stamp {
    /// Draws a number that no stamp had before.
    pub(crate) fn renew(&self) {
        self.0.set(next());
    }
    /// Returns the present number.
    pub(crate) fn number(&self) -> u64 {
        self.0.get()
    }
}

fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
