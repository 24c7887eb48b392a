//! Large pages for the tape's long segments.
//!
//! A tape is written once from its begin to its end. With pages of 4 KiB the system is entered for each of them, which
//! may take a third of a gradient's time. Linux gives pages of 2 MiB, 512 times fewer, where it is told that it may
//! (`madvise`); elsewhere the advice is an error without effect. Such a page has an address that is a multiple of its
//! size: a segment that begins anywhere has small pages at both of its ends, which is half of it where it is two
//! large pages long.

use super::stack::{SEGMENT, choose};
use gradus_ir::{AttrSet, BinaryOp, Body, Builder, FuncId, IntPredicate, Unit, Value};

/// The shortest segment that is worth it: a large page, with what an allocator keeps beside it.
const LONG_BYTES: i64 = LARGE_PAGE_BYTES - 64;
const LARGE_PAGE_BYTES: i64 = 2 << 20;
const SMALL_PAGE_BYTES: i64 = 4 << 10;
/// `MADV_HUGEPAGE`.
const HUGE_PAGES: i128 = 14;

/// Has the stack ask the system for large pages where a segment is long: for processors, not for devices.
pub fn advise(unit: &mut Unit) {
    let Some(func) = unit.function(SEGMENT) else {
        return;
    };
    let (ptr, long, int) = (unit.types.ptr(), unit.types.int(64), unit.types.int(32));
    let ty = unit.types.func(int, vec![ptr, long, int]);
    let advise = unit.declare("madvise", ty, AttrSet::default());
    let function = &unit.functions[advise];
    if function.ty != ty || function.defined || function.body.is_some() {
        return;
    }
    let Some(aligned) = gradus_edit::aligned_alloc(unit) else {
        return;
    };
    let malloc = crate::alloc::malloc_function(unit);
    let mut body = Body::new(&[long]);
    let mut b = Builder::new(unit, &mut body);
    let bytes = b.body.params()[0];
    let least = b.i64(LONG_BYTES);
    let is_long = b.icmp(IntPredicate::Uge, bytes, least);
    let block = choose(&mut b, is_long, &[ptr], |b, is_long| {
        Some(match is_long {
            true => in_large_pages(b, (aligned, advise), bytes),
            false => {
                let call = b.call(malloc, &[bytes]);
                b.body.result(call)
            }
        })
    });
    b.return_(block);
    unit.functions[func].body = Some(Box::new(body));
}

/// A block that begins with a large page, and the advice for its whole small pages: what is told of blocks that lie
/// side by side is one piece.
fn in_large_pages(b: &mut Builder<'_>, (aligned, advise): (FuncId, FuncId), bytes: Value) -> Value {
    let large = b.i64(LARGE_PAGE_BYTES);
    let call = b.call(aligned, &[large, bytes]);
    let block = b.body.result(call);
    let rest = b.i64(SMALL_PAGE_BYTES - 1);
    let length = b.add(bytes, rest);
    let mask = b.i64(-SMALL_PAGE_BYTES);
    let length = b.binary(BinaryOp::And, length, mask);
    let int = b.unit.types.int(32);
    let huge = b.int(int, HUGE_PAGES);
    b.call(advise, &[block, length, huge]);
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::stack::functions;
    use gradus_ir::{Op, OpKind};

    /// The advice stands behind a question about the segment's length, and is given once.
    #[test]
    fn long_segments_ask_for_large_pages() {
        let mut unit = Unit::default();
        functions(&mut unit);
        advise(&mut unit);
        let segment = unit.function(SEGMENT).expect("it is there");
        assert!(gradus_ir::verify_function(&unit, segment).is_empty());
        let body = unit.functions[segment]
            .body
            .as_deref()
            .expect("it has code");
        let madvise = unit.function("madvise").expect("it is declared");
        let calls = body.walk(body.root());
        let calls: Vec<Op> = calls
            .filter(|op| unit.callee(body, *op) == Some(madvise))
            .collect();
        assert_eq!(calls.len(), 1);
        let around = body.parent(calls[0]).and_then(|region| body.owner(region));
        assert!(matches!(body.kind(around.expect("an op")), OpKind::If));
    }

    /// A program's own function of that name is left alone.
    #[test]
    fn a_programs_own_function_gives_no_advice() {
        let mut unit = Unit::default();
        let ptr = unit.types.ptr();
        let own = unit.types.func(ptr, vec![ptr]);
        unit.declare("madvise", own, AttrSet::default());
        functions(&mut unit);
        advise(&mut unit);
        let segment = unit.function(SEGMENT).expect("it is there");
        let body = unit.functions[segment]
            .body
            .as_deref()
            .expect("it has code");
        let madvise = unit.function("madvise");
        let mut ops = body.walk(body.root());
        assert!(ops.all(|op| unit.callee(body, op) != madvise));
    }
}
