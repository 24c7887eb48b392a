//! Record of the requests to the compiling process and of their diagnostics, kept for a bug report.
//!
//! [`Settings`](crate::Settings) carries the record, and [`crate::child`] fills it.

use gradus_ir::Diagnostic;
use gradus_pipeline::Request;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The requests of a run and their diagnostics, in order; clones share the lists.
#[derive(Clone, Debug, Default)]
pub struct Record {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: Vec<Request>,
    findings: Vec<Diagnostic>,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds a request.
    pub fn add(&self, request: &Request) {
        self.lock().requests.push(request.clone());
    }
    /// Adds diagnostics.
    pub fn add_findings(&self, findings: &[Diagnostic]) {
        self.lock().findings.extend_from_slice(findings);
    }
    /// Returns all requests.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }
    /// Returns all diagnostics.
    pub fn findings(&self) -> Vec<Diagnostic> {
        self.lock().findings.clone()
    }
}
