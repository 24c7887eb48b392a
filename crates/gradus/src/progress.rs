//! Progress of a run, for a caller that shows it: the compilers' work here, and the steps of the compiling process.

use gradus_pipeline::Progress;
use std::fmt;
use std::sync::Arc;

/// The function that receives a step, or `None` at the end of the work.
type Listener = dyn Fn(Option<&Progress>) + Send + Sync;

/// The receiver of progress; by default nobody listens. Clones share the receiver.
#[derive(Clone, Default)]
pub struct ProgressSink {
    listener: Option<Arc<Listener>>,
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgressSink({})", self.is_watched())
    }
}

impl ProgressSink {
    /// Returns a sink that calls a function.
    pub fn new(listener: impl Fn(Option<&Progress>) + Send + Sync + 'static) -> ProgressSink {
        ProgressSink {
            listener: Some(Arc::new(listener)),
        }
    }

    /// Returns true if somebody listens.
    pub(crate) fn is_watched(&self) -> bool {
        self.listener.is_some()
    }

    /// Passes on a step.
    pub(crate) fn tell(&self, step: &Progress) {
        if let Some(listener) = &self.listener {
            listener(Some(step));
        }
    }

    /// Begins work that ends when the returned value is dropped. Programs that write to the terminal themselves must not
    /// run meanwhile.
    pub(crate) fn begin(&self, phase: &str, subject: &str) -> Running<'_> {
        if self.is_watched() {
            self.tell(&Progress {
                phase: phase.to_string(),
                subject: subject.to_string(),
                number: 0,
                total: 0,
            });
        }
        Running { sink: self }
    }
}

/// Work in progress.
pub(crate) struct Running<'a> {
    sink: &'a ProgressSink,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(listener) = &self.sink.listener {
            listener(None);
        }
    }
}
