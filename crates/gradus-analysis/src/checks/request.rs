//! Checks of a request: of the memory and the code of its call graph, once for all variants.

use crate::activity::memory::{MemoryActivity, Request};
use crate::checks::finding::Finding;
use crate::checks::unshadowed_stores::{UnshadowedStore, unshadowed_stores};
use crate::checks::{Run, run_checks};
use crate::view::View;
use gradus_ir::{Diagnostic, FuncId};

/// The analysis results of a request.
pub(crate) struct RequestFacts<'a> {
    pub facts: View<'a>,
    pub classes: &'a MemoryActivity,
    /// The function to differentiate.
    pub root: FuncId,
    /// Stores of active values to memory without a shadow, in source order: the first per alias set.
    pub unshadowed_stores: Vec<UnshadowedStore<'a>>,
}

impl<'a> RequestFacts<'a> {
    fn of(facts: View<'a>, request: &Request, classes: &'a MemoryActivity) -> RequestFacts<'a> {
        RequestFacts {
            facts,
            classes,
            root: request.root,
            unshadowed_stores: unshadowed_stores(facts, classes),
        }
    }

    /// Returns the findings at stores of active values to memory without a shadow.
    pub fn at_unshadowed_stores(
        &self,
        diagnose: impl Fn(&UnshadowedStore<'_>) -> Option<Diagnostic>,
    ) -> Vec<Finding> {
        let stores = self.unshadowed_stores.iter().enumerate();
        let finding = |(position, store)| {
            let diagnostic = diagnose(store)?;
            Some(Finding {
                position,
                diagnostic,
            })
        };
        stores.filter_map(finding).collect()
    }
}

/// Returns the diagnostics for the memory and the call graph of a request, errors and warnings.
pub fn request_findings(
    facts: View<'_>,
    request: &Request,
    classes: &MemoryActivity,
) -> Vec<Diagnostic> {
    let results = RequestFacts::of(facts, request, classes);
    let mut list: Vec<Diagnostic> = Vec::new();
    let found = run_checks(|run| match run {
        Run::Request(check) => check(&results),
        Run::Variant(_) => Vec::new(),
    });
    for diagnostic in found {
        if !list.contains(&diagnostic) {
            list.push(diagnostic);
        }
    }
    list
}
