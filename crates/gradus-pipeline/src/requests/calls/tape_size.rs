//! Tape sizes, for tapes in memory provided by the program. A size is known once the derivative is emitted.
//! A size query becomes a call of a small function whose body is emitted then. A size stated by the program
//! is checked then, or at run time if not constant.

use super::parse::{Call, Parsed};
use super::rewrite::{self, ResultForm};
use super::{Roots, result_misfit};
use gradus_ad::{Mode, ResultRole, Signature, stop_on_mismatch};
use gradus_ir::{
    AttrSet, Body, Builder, CastOp, Code, Diagnostic, FuncId, IntPredicate, Linkage, Op,
    SourceSpan, TypeId, Unit,
};

/// The size functions, each with the root of the tape.
pub(crate) type Sizes = Vec<(FuncId, FuncId)>;

/// A size stated by a call as a constant.
#[derive(Clone, Debug)]
pub(crate) struct StatedTapeSize {
    /// The root of the tape.
    pub root: FuncId,
    /// The size in bytes.
    pub bytes: i64,
    /// The function with the call, and the source location.
    pub place: (String, Option<SourceSpan>),
}

/// Returns the function that returns the size of a root's tape as a value of type `ty`.
fn function(unit: &mut Unit, roots: &mut Roots, root: FuncId, ty: TypeId) -> FuncId {
    let signature = unit.types.func(ty, Vec::new());
    let known = roots
        .sizes
        .iter()
        .find(|(func, of)| *of == root && unit.functions[*func].ty == signature);
    if let Some((func, _)) = known {
        return *func;
    }
    let name = unit.fresh_name(&format!("__gradus1_size_{}", unit.functions[root].name));
    let func = unit.declare(&name, signature, AttrSet::default());
    unit.functions[func].linkage = Linkage::Internal;
    roots.sizes.push((func, root));
    func
}

/// Lowers a size query.
///
/// # Errors
/// A call whose result is not an integer.
pub(super) fn lower_size_query(
    unit: &mut Unit,
    body: &mut Body,
    (op, site): (Op, FuncId),
    parsed: &Parsed,
    roots: &mut Roots,
    wanted: ResultForm,
) -> Result<(), Diagnostic> {
    let ty = match wanted {
        ResultForm::Value(ty) if unit.types.int_bits(ty).is_some_and(|bits| bits >= 32) => ty,
        ResultForm::Nothing => unit.types.int(64),
        _ => {
            let call = Call {
                unit,
                body,
                op,
                site,
            };
            let mut finding = result_misfit(&call, 1);
            finding.help = Some("declare the call with a result of type `size_t`".to_string());
            return Err(finding);
        }
    };
    let span = unit.span(body.ops[op].loc);
    let root = roots.root(unit, &parsed.variant, span);
    let func = function(unit, roots, root, ty);
    let signature = Signature {
        params: Vec::new(),
        results: vec![(ResultRole::Primal, ty)],
        ty: unit.functions[func].ty,
    };
    rewrite::replace(unit, body, op, func, &[], &signature, wanted);
    Ok(())
}

/// Checks that the memory passed by a call is large enough for the tape.
pub(super) fn check_tape_size(
    unit: &mut Unit,
    body: &mut Body,
    (op, site): (Op, FuncId),
    parsed: &Parsed,
    roots: &mut Roots,
    root: FuncId,
) {
    let takes = matches!(parsed.variant.mode, Mode::Augmented | Mode::Reverse);
    let Some(allocated) = parsed.allocated.filter(|_| takes) else {
        // Not an error: the call passes no memory for a tape.
        return;
    };
    if let Some(bytes) = body.as_int(unit, allocated) {
        let function = &unit.functions[site];
        let name = function.display_name();
        roots.allocated.push(StatedTapeSize {
            root,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            place: (name.to_string(), unit.span(body.ops[op].loc)),
        });
        return;
    }
    let long = unit.types.int(64);
    let size = function(unit, roots, root, long);
    let mut build = Builder::new(unit, body);
    build.loc = build.body.ops[op].loc;
    build.set_insertion_before(op);
    let call = build.call(size, &[]);
    let needed = build.body.result(call);
    let given = build.cast(CastOp::ZExt, allocated, long);
    let wrong = build.icmp(IntPredicate::Ult, given, needed);
    stop_on_mismatch(&mut build, wrong);
}

/// Emits the bodies of the size functions, once all derivatives are emitted. `bytes_of` returns the size of
/// a root's tape. The diagnostics concern stated sizes that are too small.
pub(crate) fn emit_size_functions(
    unit: &mut Unit,
    roots: &Roots,
    bytes_of: &dyn Fn(FuncId) -> u64,
) -> Vec<Diagnostic> {
    for &(func, root) in &roots.sizes {
        let ty = unit.functions[func].ty;
        let result = unit.result_type(ty);
        let mut body = Body::new(&[]);
        let mut build = Builder::new(unit, &mut body);
        let value = result.map(|ty| build.int(ty, bytes_of(root).into()));
        build.return_(value);
        unit.functions[func].body = Some(Box::new(body));
    }
    let small = |stated: &&StatedTapeSize| {
        u64::try_from(stated.bytes).is_ok_and(|bytes| bytes < bytes_of(stated.root))
    };
    let small = roots.allocated.iter().filter(small);
    let finding = |stated: &StatedTapeSize| {
        let needed = bytes_of(stated.root);
        let message = format!(
            "the tape requires {needed} bytes, but the call passes {}",
            stated.bytes
        );
        Diagnostic::error(Code::SplitMode, message)
            .in_function(&stated.place.0)
            .at(stated.place.1.clone(), "passed here")
            .help("pass the size that `__enzyme_augmentsize` returns for the same activities")
    };
    small.map(finding).collect()
}
