//! Tests of [`Body`] and [`Builder`]: use lists stay consistent through construction, walks and edits.

use crate::mutant::{Mutant, plant};
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

#[test]
fn constants_round_to_nearest_even_and_overflow_to_infinity() {
    use crate::FloatKind::*;
    let power = |exponent: i32| 2f64.powi(exponent);
    for (kind, value, bits) in [
        (F16, 65504.0, 0x7bff_u128),
        (F16, 65519.9, 0x7bff),
        (F16, 65520.0, 0x7c00),
        (F16, 1e6, 0x7c00),
        (F16, -1e300, 0xfc00),
        (F16, f64::NEG_INFINITY, 0xfc00),
        (F16, -0.0, 0x8000),
        (F16, 0.1, 0x2e66),
        (F16, 2049.0, 0x6800),
        (F16, 2051.0, 0x6802),
        (F16, power(-14) - power(-24), 0x03ff),
        (F16, power(-24), 1),
        (F16, power(-25), 0),
        (F16, 3.0 * power(-25), 2),
        (F16, f64::MIN_POSITIVE, 0),
        (F16, 5e-324, 0),
        (BF16, 1.0 + power(-8), 0x3f80),
        (BF16, 1.0 + power(-8) + power(-30), 0x3f81),
        (BF16, 1.0 + 3.0 * power(-8), 0x3f82),
        (BF16, f64::from(f32::MAX), 0x7f80),
        (BF16, 1e300, 0x7f80),
        (X86F80, f64::INFINITY, 0x7fff_8000_0000_0000_0000),
        (X86F80, 5e-324, 0x3bcd_8000_0000_0000_0000),
        (X86F80, 3.0 * 5e-324, 0x3bce_c000_0000_0000_0000),
        (F128, 5e-324, 0x3bcd << 112),
        (F128, -1.5, 0xbfff_8000 << 96),
    ] {
        let found = crate::consts::float_bits(kind, value);
        assert_eq!(found, bits, "{kind:?} {value:e}: {found:x}");
    }
    for kind in [F16, BF16] {
        let infinity = crate::consts::float_bits(kind, f64::INFINITY);
        assert!(crate::consts::float_bits(kind, f64::NAN) & 0x7fff > infinity);
    }
}

/// With the seeded fault 0.3 is rounded down: the test above would fail.
#[test]
fn seeded_fault_of_narrow_constants_is_detected() {
    let found = |mutant| {
        plant(mutant);
        let bits = crate::consts::float_bits(crate::FloatKind::F16, 0.3);
        plant(None);
        bits
    };
    assert_eq!(found(None), 0x34cd);
    assert_ne!(found(Some(Mutant::NarrowConstantsTruncated)), 0x34cd);
}
