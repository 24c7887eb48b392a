//! Large pages for the tape's long segments.
//!
//! A tape is written once from its begin to its end. With pages of 4 KiB the system is entered for each of them: of
//! LULESH's gradient that is a third of the time. Linux gives pages of 2 MiB, 512 times fewer, for memory that begins
//! at a multiple of that where it is told to (`madvise`); elsewhere the advice is an error without effect.

use super::stack::{GROW, choose};
use gradus_edit::aligned_alloc;
use gradus_ir::{AttrSet, Builder, IntPredicate, Op, Unit};

/// A large page, and the shortest segment that is worth one.
const PAGE_BYTES: i64 = 2 << 20;
/// `MADV_HUGEPAGE`.
const HUGE_PAGES: i128 = 14;

/// Has the stack's long segments begin at large pages, and asks the system for these: for processors, not for devices.
pub fn advise(unit: &mut Unit) {
    let Some(func) = unit.function(GROW) else {
        return;
    };
    let (ptr, long, int) = (unit.types.ptr(), unit.types.int(64), unit.types.int(32));
    let ty = unit.types.func(int, vec![ptr, long, int]);
    let advise = unit.declare("madvise", ty, AttrSet::default());
    let is_library = unit.functions[advise].ty == ty && !unit.functions[advise].defined;
    let Some(aligned) = aligned_alloc(unit).filter(|_| is_library) else {
        return;
    };
    let Some(mut body) = unit.functions[func].body.take() else {
        return;
    };
    let malloc = unit.function("malloc");
    let allocates = |op: &Op| unit.callee(&body, *op).is_some_and(|f| Some(f) == malloc);
    if let Some(call) = body.walk(body.root()).find(allocates) {
        let (total, plain) = (unit.call_args(&body, call)[0], body.result(call));
        let mut b = Builder::new(unit, &mut body);
        b.at_op(call);
        let page = b.i64(PAGE_BYTES);
        let enough = b.i64(PAGE_BYTES - 16);
        let long = b.icmp(IntPredicate::Uge, total, enough);
        let segment = choose(&mut b, long, &[ptr], |b, is_long| {
            let args = [page, total];
            let (allocate, args) = match is_long {
                true => (aligned, &args[..]),
                false => (malloc?, &args[1..]),
            };
            let made = b.call(allocate, args);
            let made = b.body.result(made);
            if is_long {
                let huge = b.int(int, HUGE_PAGES);
                b.call(advise, &[made, total, huge]);
            }
            Some(made)
        });
        if let Some(segment) = segment {
            body.replace_uses(plain, segment);
            body.erase(call);
        }
    }
    unit.functions[func].body = Some(body);
}
