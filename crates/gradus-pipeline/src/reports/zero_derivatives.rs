//! Warnings for derivatives that are zero for all arguments.

use crate::reports::derivative_record::DerivativeRecord;
use crate::requests::{Root, Roots};
use gradus_ad::{Mode, Report};
use gradus_ir::{Body, CastOp, Code, Diagnostic, OpKind, Unit};

/// Returns warnings for derivatives that are zero for all arguments.
pub(crate) fn zero_derivative_warnings(
    unit: &Unit,
    roots: &Roots,
    made: &[Vec<DerivativeRecord>],
) -> Vec<Diagnostic> {
    let of_root = |root: &Root| {
        let primal = &unit.functions[root.variant.func];
        let name = primal.display_name();
        let (why, help) = if holds_for_all_versions(root, made, |report| report.lacks_cotangents) {
            (
                "the outputs are in memory that the function allocates, and such memory has no cotangents",
                ALLOCATED_OUTPUT_HELP,
            )
        } else if !holds_for_all_versions(root, made, |report| report.is_zero) {
            return None;
        } else {
            (
                "no active input reaches an active output",
                help_on_output(unit, root),
            )
        };
        let message = format!("the derivative of `{name}` is zero: {why}");
        let finding = Diagnostic::warning(Code::ZeroDerivative, message);
        let place = root.span.clone().or(primal.span.clone());
        Some(finding.at(place, "requested here").help(help))
    };
    roots.list.iter().filter_map(of_root).collect()
}

/// The help on an output allocated by the function.
const ALLOCATED_OUTPUT_HELP: &str = "allocate the output in the caller and pass the address with a shadow; or call `__enzyme_augmentfwd`, \
                          write the cotangents into the returned shadow, and call `__enzyme_reverse`";

/// Returns the help on a gradient without an active output, depending on how the function returns results.
fn help_on_output(unit: &Unit, root: &Root) -> &'static str {
    let primal = &unit.functions[root.variant.func];
    let result = unit.result_type(primal.ty);
    let is_gradient = root.variant.mode == Mode::Combined;
    let casts = |body: &Body| {
        let mut ops = body.walk(body.root());
        ops.any(|op| matches!(body.kind(op), OpKind::Cast(CastOp::IntToPtr)))
    };
    if is_gradient && result.is_some_and(|ty| unit.types.is_ptr(ty)) {
        ALLOCATED_OUTPUT_HELP
    } else if primal.body.as_deref().is_some_and(casts) {
        "declare the argument as a pointer: an integer cast to a pointer has no shadow"
    } else {
        "check the activity markers, or `--wrt` and `--inactive`"
    }
}

/// Returns true if a fact holds for the derivative of a root, whichever version runs.
pub(crate) fn holds_for_all_versions(
    root: &Root,
    made: &[Vec<DerivativeRecord>],
    fact: impl Fn(&Report) -> bool,
) -> bool {
    let mut lists = made.iter();
    let list = lists.find(|list| list.first().is_some_and(|whole| whole.func == root.func));
    let [whole, others @ ..] = list.map_or(&[][..], Vec::as_slice) else {
        // Not an error: a registered derivative has no report.
        return false;
    };
    let of_root = |made: &&DerivativeRecord| {
        made.variant.func == root.variant.func && made.variant.mode == root.variant.mode
    };
    // If a run-time check selects between two versions, the versions decide.
    let holds = match whole.report.versions {
        true => others.iter().filter(of_root).all(|made| fact(&made.report)),
        false => fact(&whole.report),
    };
    // An augmented primal has no derivative; the reverse half is requested too.
    holds && root.variant.mode != Mode::Augmented
}
