//! What can go wrong at the two ends, as data.

/// A failure of reading, linking, verifying, optimising or emitting, in LLVM's or our own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// What went wrong, one line where LLVM allows it.
    pub message: String,
}

impl HostError {
    pub(crate) fn new(message: impl Into<String>) -> HostError {
        HostError {
            message: message.into(),
        }
    }
}

impl std::fmt::Display for HostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}
