//! Active values in variables of other files (GRD0009): the other file defines the variable without a shadow.

use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use gradus_ir::Code;

/// Refuses stores of active values to variables of other files.
pub(super) fn stores(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::OtherFile(global) = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let name = &unit.globals[global].name;
        let message = format!("active values are stored in `{name}`, a variable of another file");
        let help = format!("compile the file that defines `{name}` together with this one");
        Some(store.error(unit, Code::ExternalGlobal, message).help(help))
    })
}
