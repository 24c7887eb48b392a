//! Huge pages for the long segments of the tape.
//!
//! A tape is written once from begin to end. With pages of 4 KiB, each page causes a page fault, which may
//! take a third of a gradient's time. Linux provides pages of 2 MiB, 512 times fewer, after a call of
//! `madvise`. On other systems the call is an error without effect. The advised range is rounded to whole 4
//! KiB pages, and advice for adjacent segments forms one contiguous range.

use crate::tape::segments::{GROW_FUNCTION, choose};
use gradus_ir::{AttrSet, BinaryOp, Builder, CastOp, IntPredicate, Op, Unit};

/// Shortest segment with advice: a huge page minus the allocator's overhead.
const LONG_SEGMENT_BYTES: i64 = (2 << 20) - 64;
const SMALL_PAGE_BYTES: i64 = 4 << 10;
/// `MADV_HUGEPAGE`.
const MADV_HUGEPAGE: i128 = 14;

/// Makes the stack request huge pages for long segments: for processors, not for devices.
pub fn advise_huge_pages(unit: &mut Unit) {
    let Some(func) = unit.function(GROW_FUNCTION) else {
        // Not an error: no derivative has a stack.
        return;
    };
    let (ptr, long, int) = (unit.types.ptr(), unit.types.int(64), unit.types.int(32));
    let ty = unit.types.func(int, vec![ptr, long, int]);
    let advise = unit.declare("madvise", ty, AttrSet::default());
    let function = &unit.functions[advise];
    if function.ty != ty || function.defined || function.body.is_some() {
        return;
    }
    let Some(mut body) = unit.functions[func].body.take() else {
        // Not an error: another module provides the function.
        return;
    };
    let malloc = unit.function("malloc");
    let allocates = |op: &Op| unit.callee(&body, *op).is_some_and(|f| Some(f) == malloc);
    let call = body.walk(body.root()).find(allocates);
    if let Some((call, next)) = call.and_then(|call| Some((call, body.next(call)?))) {
        let (total, segment) = (unit.call_args(&body, call)[0], body.result(call));
        let mut b = Builder::new(unit, &mut body);
        b.set_insertion_before(next);
        let least = b.i64(LONG_SEGMENT_BYTES);
        let is_long = b.icmp(IntPredicate::Uge, total, least);
        choose(&mut b, is_long, &[], |b, is_long| {
            if is_long {
                let mask = b.i64(-SMALL_PAGE_BYTES);
                let start = b.cast(CastOp::PtrToInt, segment, long);
                let into = b.i64(SMALL_PAGE_BYTES - 1);
                let into = b.binary(BinaryOp::And, start, into);
                let back = b.i64(0);
                let back = b.sub(back, into);
                let page = b.byte_addr(segment, back);
                let length = b.add(total, into);
                let rest = b.i64(SMALL_PAGE_BYTES - 1);
                let length = b.add(length, rest);
                let length = b.binary(BinaryOp::And, length, mask);
                let huge = b.int(int, MADV_HUGEPAGE);
                b.call(advise, &[page, length, huge]);
            }
            None
        });
    }
    unit.functions[func].body = Some(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::segments::functions;
    use gradus_ir::OpKind;

    /// The advice lies behind a test of the segment's length, and is emitted once.
    #[test]
    fn long_segments_get_huge_pages() {
        let mut unit = Unit::default();
        functions(&mut unit);
        advise_huge_pages(&mut unit);
        let grow = unit.function(GROW_FUNCTION).expect("it is there");
        assert!(gradus_ir::verify_function(&unit, grow).is_empty());
        let body = unit.functions[grow].body.as_deref().expect("it has code");
        let madvise = unit.function("madvise").expect("it is declared");
        let calls = body.walk(body.root());
        let calls: Vec<Op> = calls
            .filter(|op| unit.callee(body, *op) == Some(madvise))
            .collect();
        assert_eq!(calls.len(), 1);
        let around = body.parent(calls[0]).and_then(|region| body.owner(region));
        assert!(matches!(body.kind(around.expect("an op")), OpKind::If));
    }

    /// A program's function of the same name is left alone.
    #[test]
    fn user_madvise_is_not_called() {
        let mut unit = Unit::default();
        let ptr = unit.types.ptr();
        let own = unit.types.func(ptr, vec![ptr]);
        unit.declare("madvise", own, AttrSet::default());
        functions(&mut unit);
        advise_huge_pages(&mut unit);
        let grow = unit.function(GROW_FUNCTION).expect("it is there");
        let body = unit.functions[grow].body.as_deref().expect("it has code");
        let madvise = unit.function("madvise");
        let mut ops = body.walk(body.root());
        assert!(ops.all(|op| unit.callee(body, op) != madvise));
    }
}
