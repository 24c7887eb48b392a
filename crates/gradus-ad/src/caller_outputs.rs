//! Outputs that the function makes itself, as a caller of the derivative sees them: blocks behind its result or behind
//! an argument, and variables that its result leads to. Cotangents reach such memory only if the shadow is there
//! before the return sweep, and stays as the caller left it.

use crate::closure_facts::ClosureFacts;
use crate::variant::{Mode, ResultActivity, Variant};
use gradus_analysis::{ClassState, Origin};
use gradus_ir::{Code, Diagnostic, GlobalId, Unit};

/// Refuses a result with a shadow if cotangents cannot be put there.
///
/// # Errors
/// In a gradient by one call, a result that leads to memory of the function. In the split interface, a result that
/// leads to a variable, whose shadow the return sweep begins by clearing.
pub(crate) fn check(
    unit: &Unit,
    closure: &ClosureFacts,
    variant: &Variant,
) -> Result<(), Vec<Diagnostic>> {
    let with_shadow = matches!(variant.result, ResultActivity::Dup | ResultActivity::Both);
    if !variant.outermost || !with_shadow || variant.mode == Mode::Forward {
        return Ok(());
    }
    let classes = &closure.classes;
    let mut origins = (closure.memory.classes())
        .filter(|(id, _)| {
            classes.is_returned(*id)
                && classes.state(*id) != ClassState::Inactive
                && classes.holds_active_floats(*id)
        })
        .flat_map(|(_, class)| &class.origins);
    let function = &unit.functions[variant.func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let refuse = |message: String, help: &str| {
        let finding = Diagnostic::error(Code::BadRequest, message).in_function(name);
        Err(vec![
            finding
                .at(function.span.clone(), "defined here")
                .help(help.to_string()),
        ])
    };
    let variable = |origin: &Origin| match origin {
        Origin::Global(global) => Some(*global),
        _ => None,
    };
    if variant.mode == Mode::Combined {
        let made = |origin: &Origin| {
            matches!(origin, Origin::Heap(..) | Origin::Alloca(..)) || variable(origin).is_some()
        };
        return match origins.any(made) {
            true => refuse(
                format!(
                    "`dup_return` in a gradient by one call, and `{name}` returns memory that it makes: no cotangent can be put there"
                ),
                "call `__enzyme_augmentfwd`, add cotangents to the returned shadow, and call `__enzyme_reverse`",
            ),
            false => Ok(()),
        };
    }
    let cleared: Option<GlobalId> = origins.filter_map(variable).next();
    match cleared {
        Some(global) => refuse(
            format!(
                "the result of `{name}` leads to the variable `{}`, whose shadow the return sweep begins by clearing",
                unit.globals[global].name
            ),
            "let the function return a block that it allocates, or write through a pointer argument with a shadow",
        ),
        None => Ok(()),
    }
}

/// Returns true if a gradient by one call is zero because its outputs lie in blocks that the function allocates.
pub(crate) fn has_no_cotangent(unit: &Unit, closure: &ClosureFacts, variant: &Variant) -> bool {
    variant.mode == Mode::Combined
        && variant.outermost
        && variant.result == ResultActivity::Const
        && gradus_analysis::writes_only_own_blocks(closure.view(unit), &closure.classes)
}
