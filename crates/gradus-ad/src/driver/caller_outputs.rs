//! Outputs in memory that the differentiated function allocates, as seen by a caller of the derivative.
//!
//! Such outputs are blocks behind the result or an argument, and global variables that the result points to.
//! Cotangents reach an output only if the shadow exists before the reverse pass and keeps the caller's
//! values.

use crate::analysis::program_facts::ProgramFacts;
use crate::variant::{Mode, ResultActivity, Variant};
use gradus_analysis::{MemoryOrigin, ShadowPresence};
use gradus_ir::{Code, Diagnostic, GlobalId, Unit};

/// Refuses a result with a shadow that cannot receive cotangents.
///
/// # Errors
/// In combined mode, a result that points to memory of the function. In split mode, a result that points to a
/// global variable: the reverse pass begins by clearing the variable's shadow.
pub(crate) fn check_result_shadow(
    unit: &Unit,
    closure: &ProgramFacts,
    variant: &Variant,
) -> Result<(), Vec<Diagnostic>> {
    let with_shadow = matches!(variant.result, ResultActivity::Dup | ResultActivity::Both);
    if !variant.outermost || !with_shadow || variant.mode == Mode::Forward {
        return Ok(());
    }
    let classes = &closure.classes;
    let mut origins = (closure.memory.alias_sets())
        .filter(|(id, _)| {
            classes.is_result_reachable(*id)
                && classes.state(*id) != ShadowPresence::Inactive
                && classes.holds_active_floats(*id)
        })
        .flat_map(|(_, class)| &class.origins);
    let function = &unit.functions[variant.func];
    let name = function.display_name();
    let refuse = |message: String, help: &str| {
        let finding = Diagnostic::error(Code::BadRequest, message).in_function(name);
        Err(vec![
            finding
                .at(function.span.clone(), "defined here")
                .help(help.to_string()),
        ])
    };
    let variable = |origin: &MemoryOrigin| match origin {
        MemoryOrigin::Global(global) => Some(*global),
        _ => None,
    };
    if variant.mode == Mode::Combined {
        let made = |origin: &MemoryOrigin| {
            matches!(origin, MemoryOrigin::Heap(..) | MemoryOrigin::Alloca(..))
                || variable(origin).is_some()
        };
        return match origins.any(made) {
            true => refuse(
                format!(
                    "`dup_return` requires split mode for `{name}`: in a one-call gradient, the caller cannot store cotangents in the returned memory"
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
                "the result of `{name}` points to the variable `{0}`, and the reverse pass starts by zeroing the shadow of `{0}`",
                unit.globals[global].name
            ),
            "return a block that the function allocates, or write through a pointer argument with a shadow",
        ),
        None => Ok(()),
    }
}

/// Returns true if a combined gradient is zero because all outputs behind arguments lie in blocks that the
/// function allocates.
pub(crate) fn has_no_cotangents(unit: &Unit, closure: &ProgramFacts, variant: &Variant) -> bool {
    variant.mode == Mode::Combined
        && variant.outermost
        && variant.result == ResultActivity::Const
        && gradus_analysis::writes_only_local_blocks(closure.view(unit), &closure.classes)
}
