//! Arguments and results whose declared activity contradicts the code (GRD0017).

use crate::checks::finding::{Finding, name_of};
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use crate::checks::variant::VariantFacts;
use crate::memory::value_accesses::ValueAccess;
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use gradus_ir::{Code, Diagnostic, Value};

/// Refuses active values that are stored in memory of a const argument, or in other memory without a shadow, and
/// read back.
pub(super) fn const_memory(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| match store.destination {
        Destination::Argument(root, index) => {
            let names = &unit.functions[root].param_names;
            let name = names.get(index).cloned().flatten();
            let name = name.unwrap_or_else(|| format!("argument {}", index + 1));
            let message = format!(
                "active values are stored in memory of `{name}`, a const argument, and read back"
            );
            let help = format!("mark `{name}` as dup and pass a shadow");
            Some(store.error(unit, Code::BadRequest, message).help(help))
        }
        Destination::Other => {
            let message = "active values are stored in memory without a shadow, and read back";
            let error = store
                .error(unit, Code::BadRequest, message)
                .note("the memory is reachable from a const argument or comes from an external function")
                .help("mark the argument that points to the memory as dup");
            Some(error)
        }
        _ => None,
    })
}

/// Refuses a result with a requested shadow that may lead to floats without a shadow. The shadow of such a pointer is
/// the pointer itself: the caller would read primal values as derivatives.
pub(super) fn results(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, classes, root) = (request.facts, request.classes, request.root);
    let unit = facts.unit;
    let bare = |class: &AliasSetId| {
        classes.provenance(*class).constant && facts.words.types_of_set(*class).has_float()
    };
    let mut returned = classes.result_reachable_sets().iter().copied();
    let Some(class) = returned.find(bare) else {
        // Not an error: all floats behind the result have shadows.
        return Vec::new();
    };
    let name = name_of(unit, root);
    let origins = &facts.memory.get(class).origins;
    let variable = origins.iter().find_map(|origin| match origin {
        MemoryOrigin::Global(global) => Some(&unit.globals[*global].name),
        _ => None,
    });
    let behind = match variable {
        Some(variable) => format!("`{variable}`, a variable without a shadow"),
        None => "memory without a shadow".to_string(),
    };
    let message = format!(
        "a shadow is requested for the result of `{name}`, but the result may point to {behind}"
    );
    let error = Diagnostic::error(Code::BadRequest, message)
        .in_function(name)
        .at(unit.functions[root].span.clone(), "defined here")
        .help("mark the argument that points to the memory as dup, or the result as `enzyme_const_return`");
    vec![Finding::without_position(error)]
}

/// Refuses a store of a pointer with a shadow to memory without a shadow.
pub(super) fn pointers(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_accesses(|op, access| {
        let ValueAccess::Store { ptr, value } = access else {
            // Not an error: a load stores no pointer.
            return None;
        };
        loses_shadow(variant, ptr, value).then(|| {
            let message = "a pointer to active memory is stored in memory without a shadow";
            variant
                .error(op, Code::BadRequest, message)
                .help("mark the argument or variable that holds the pointer as dup")
        })
    })
}

fn loses_shadow(variant: &VariantFacts<'_>, ptr: Value, value: Value) -> bool {
    let (facts, classes, func) = (variant.facts, variant.classes, variant.func);
    let active = facts.words.carries_pointer(func, value)
        && variant.points_to_active(value)
        && variant.may_point_into(value, |class| classes.holds_active_floats(class));
    let is_write_only = |class| classes.is_write_only(class);
    let is_note = facts.memory.points_only_into(func, ptr, is_write_only);
    active && !is_note && !variant.activity.shadow(ptr).is_some()
}
