//! Tag of a tape that passes through the program: detects tapes that do not match the reverse pass.
//!
//! Augmented primal and reverse pass are built from the same facts. Requested at two places, they may still
//! differ in activity or in the surrounding program. The forward pass writes a number derived from the plan
//! into the block. The reverse pass compares the number and ends the program with a message on a mismatch: a
//! tape of another function, of other activities, or an already consumed tape.

use super::plan::TapePlan;
use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use crate::emit::libc;
use crate::variant::{Mode, Variant};
use gradus_ir::{
    BinaryOp, Body, Builder, ConstKind, FuncId, IntPredicate, Linkage, Symbol, Unit, Value,
};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The function that ends the program on a mismatched tape.
const TAG_MISMATCH: &str = "__gradus1_tape_misfit";
const MESSAGE: &str = "gradus: error[GRD0014]: tape mismatch: the augmented primal of this function with the same \
                       activities, keywords and size did not write this tape, or the tape is already used\n";
/// Tag bit for strong products. A reverse pass without `enzyme_strong_zero` rejects such a tape; a reverse
/// pass with the keyword accepts both kinds.
const STRONG_ZERO_BIT: i64 = 2;

/// Returns the tag of a plan; never zero. An augmented primal with strong products sets [`STRONG_ZERO_BIT`].
pub fn tag_of(unit: &Unit, variant: &Variant, plan: &TapePlan) -> i64 {
    let mut hasher = DefaultHasher::new();
    let name = &unit.functions[variant.func].name;
    let asked = (variant.width, &variant.args, variant.result);
    (name, asked, &variant.overwritten).hash(&mut hasher);
    for (node, ty) in &plan.slots {
        (node, unit.layout.size_bytes(unit, *ty)).hash(&mut hasher);
    }
    for node in &plan.saved {
        format!("{node:?} {:?}", plan.locations.get(node)).hash(&mut hasher);
    }
    let own = (hasher.finish() | 1) as i64 & !STRONG_ZERO_BIT;
    let strong = variant.strong_zero && variant.mode == Mode::Augmented;
    own | if strong { STRONG_ZERO_BIT } else { 0 }
}

/// Writes a tag.
pub fn write(out: &mut DerivativeBuilder<'_>, at: Value, mark: i64) {
    let mark = out.build().i64(mark);
    out.store(mark, at, MemorySpace::Tape, None);
}

/// Ends the program if the tag differs from the expected tag of `variant`.
pub fn check(out: &mut DerivativeBuilder<'_>, variant: &Variant, at: Value, mark: i64) {
    let long = out.unit.types.int(64);
    let mut found = out.load(long, at, MemorySpace::Tape, None);
    if variant.strong_zero {
        let others = out.build().i64(!STRONG_ZERO_BIT);
        found = out.build().binary(BinaryOp::And, found, others);
    }
    let mark = out.build().i64(mark);
    let wrong = out.build().icmp(IntPredicate::Ne, found, mark);
    stop_on_mismatch(&mut out.build(), wrong);
}

/// Ends the program with the message if `wrong` holds.
pub fn stop_on_mismatch(b: &mut Builder<'_>, wrong: Value) {
    let misfit = mismatch_function(b.unit);
    let (_, yes, no) = b.if_(wrong, &[]);
    let back = b.set_insertion_end(yes);
    b.call(misfit, &[]);
    b.yield_(&[]);
    b.set_insertion_end(no);
    b.yield_(&[]);
    b.restore_insertion_point(back);
}

fn mismatch_function(unit: &mut Unit) -> FuncId {
    if let Some(func) = unit.function(TAG_MISMATCH) {
        return func;
    }
    let void = unit.types.void();
    let ty = unit.types.func(void, Vec::new());
    let mut body = Body::new(&[]);
    build_mismatch_body(&mut Builder::new(unit, &mut body));
    unit.define(TAG_MISMATCH.to_string(), ty, Linkage::LinkOnceOdr, body)
}

/// Emits the message and the end of the program.
fn build_mismatch_body(b: &mut Builder<'_>) {
    let ptr = b.unit.types.ptr();
    let global = message(b.unit);
    let kind = ConstKind::Global { global, offset: 0 };
    let text = b.unit.consts.intern(ptr, kind);
    let text = b.constant(text);
    libc::emit_message(b, text, MESSAGE.len());
    libc::emit_abort(b);
}

fn message(unit: &mut Unit) -> gradus_ir::GlobalId {
    let name = format!("{TAG_MISMATCH}_text");
    if let Some(Symbol::Global(known)) = unit.symbol(&name) {
        return known;
    }
    unit.add_string(name, MESSAGE)
}
