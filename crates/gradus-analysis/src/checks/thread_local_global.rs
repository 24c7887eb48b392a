//! Active values in thread-local variables (GRD0010): each thread would need a shadow of its own.

use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use gradus_ir::Code;

/// Refuses stores of active values to thread-local variables.
pub(super) fn stores(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::ThreadLocal(global) = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let name = &unit.globals[global].name;
        let message = format!("active values are stored in the thread-local variable `{name}`");
        let help =
            format!("pass `{name}` as an argument, or remove the thread-local storage class");
        Some(
            store
                .error(unit, Code::ThreadLocalGlobal, message)
                .help(help),
        )
    })
}
