//! The size of a tape that a program gives memory for. It is known when the derivative is made: a
//! question for it becomes a call of a small function that gets its body then, and a size that the
//! program states is compared then, or at run time where it is no constant.

use super::parse::{Call, Parsed};
use super::rewrite::{self, Wanted};
use super::{Roots, result_misfit};
use gradus_ad::{Mode, ResultRole, Signature, end_where};
use gradus_ir::{
    AttrSet, Body, Builder, CastOp, Code, Diagnostic, FuncId, IntPredicate, Linkage, Op,
    SourceSpan, TypeId, Unit,
};

/// The functions that give sizes: each with the root whose tape is meant.
pub(crate) type Sizes = Vec<(FuncId, FuncId)>;

/// A size that a call states as a constant.
#[derive(Clone, Debug)]
pub(crate) struct Allocated {
    /// The derivative whose tape is meant.
    pub root: FuncId,
    /// The bytes.
    pub bytes: i64,
    /// The function that holds the call, and its place.
    pub place: (String, Option<SourceSpan>),
}

/// The function that gives the size of a root's tape as a value of type `ty`.
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

/// Answers a question for a size.
///
/// # Errors
/// A call whose result is no whole number.
pub(super) fn ask(
    unit: &mut Unit,
    body: &mut Body,
    (op, site): (Op, FuncId),
    parsed: &Parsed,
    roots: &mut Roots,
    wanted: Wanted,
) -> Result<(), Diagnostic> {
    let ty = match wanted {
        Wanted::Value(ty) if unit.types.int_bits(ty).is_some_and(|bits| bits >= 32) => ty,
        Wanted::Nothing => unit.types.int(64),
        _ => {
            let call = Call {
                unit,
                body,
                op,
                site,
            };
            let mut finding = result_misfit(&call, 1);
            finding.help = Some("declare it with a result of type `size_t`".to_string());
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

/// Sees to it that the memory that a call gives for a tape is large enough.
pub(super) fn check(
    unit: &mut Unit,
    body: &mut Body,
    (op, site): (Op, FuncId),
    parsed: &Parsed,
    roots: &mut Roots,
    root: FuncId,
) {
    let takes = matches!(parsed.variant.mode, Mode::Augmented | Mode::Return);
    let Some(allocated) = parsed.allocated.filter(|_| takes) else {
        // Not an error: the call gives no memory for a tape.
        return;
    };
    if let Some(bytes) = body.as_int(unit, allocated) {
        let function = &unit.functions[site];
        let name = function.source_name.as_ref().unwrap_or(&function.name);
        roots.allocated.push(Allocated {
            root,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            place: (name.clone(), unit.span(body.ops[op].loc)),
        });
        return;
    }
    let long = unit.types.int(64);
    let size = function(unit, roots, root, long);
    let mut build = Builder::new(unit, body);
    build.loc = build.body.ops[op].loc;
    build.at_op(op);
    let call = build.call(size, &[]);
    let needed = build.body.result(call);
    let given = build.cast(CastOp::ZExt, allocated, long);
    let wrong = build.icmp(IntPredicate::Ult, given, needed);
    end_where(&mut build, wrong);
}

/// Gives the functions of sizes their bodies, once all derivatives are made; `bytes_of` tells the size
/// of a root's tape. Findings are sizes stated too small.
pub(crate) fn settle(
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
    let small = |stated: &&Allocated| {
        u64::try_from(stated.bytes).is_ok_and(|bytes| bytes < bytes_of(stated.root))
    };
    let small = roots.allocated.iter().filter(small);
    let finding = |stated: &Allocated| {
        let needed = bytes_of(stated.root);
        let message = format!("the tape takes {needed} bytes, {} are given", stated.bytes);
        Diagnostic::error(Code::SplitMode, message)
            .in_function(&stated.place.0)
            .at(stated.place.1.clone(), "given here")
            .help("give as many as `__enzyme_augmentsize` says, asked with the same activities")
    };
    small.map(finding).collect()
}
