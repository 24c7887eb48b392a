//! Tests of [`Body`] and [`Builder`]: use lists stay consistent through construction, walks and edits.

use crate::{Body, Builder, OpKind, Unit};

#[test]
fn use_lists_follow_edits() {
    let mut unit = Unit::default();
    let double = unit.types.f64();
    let mut body = Body::new(&[double, double]);
    let (a, b) = (body.params()[0], body.params()[1]);
    let mut build = Builder::new(&mut unit, &mut body);
    let sum = build.fadd(a, b);
    let square = build.fmul(sum, sum);
    build.return_(Some(square));
    assert_eq!(body.uses(sum).count(), 2);
    body.replace_uses(sum, a);
    assert_eq!(body.uses(sum).count(), 0);
    assert_eq!(body.uses(a).count(), 3);
    let op = body.def_op(sum).expect("an op gives the sum");
    body.erase(op);
    assert_eq!(body.uses(a).count(), 2);
    assert_eq!(body.walk(body.root()).count(), 2);
}

#[test]
fn erasing_an_op_erases_its_regions() {
    let mut unit = Unit::default();
    let double = unit.types.f64();
    let bit = unit.types.int(1);
    let mut body = Body::new(&[bit, double]);
    let (c, x) = (body.params()[0], body.params()[1]);
    let mut build = Builder::new(&mut unit, &mut body);
    let (op, then, other) = build.if_(c, &[double]);
    let outside = build.set_insertion_end(then);
    let y = build.fmul(x, x);
    build.yield_(&[y]);
    build.set_insertion_end(other);
    build.yield_(&[x]);
    build.restore_insertion_point(outside);
    build.return_(None);
    assert_eq!(body.walk(body.root()).count(), 5);
    body.erase(op);
    assert_eq!(body.walk(body.root()).count(), 1);
    assert!(!body.has_uses(x) && !body.has_uses(c));
    assert!(matches!(
        body.kind(body.first(body.root()).expect("the return")),
        OpKind::Return
    ));
}

#[test]
fn constants_of_every_format_hold_one_half() {
    use crate::FloatKind::*;
    for (kind, bits) in [
        (F64, 0x3fe0_0000_0000_0000u128),
        (F32, 0x3f00_0000),
        (F16, 0x3800),
        (BF16, 0x3f00),
        (X86F80, 0x3ffe_8000_0000_0000_0000),
        (F128, 0x3ffe_0000_0000_0000_0000_0000_0000_0000),
    ] {
        assert_eq!(crate::consts::float_bits(kind, 0.5), bits, "{kind:?}");
    }
}
