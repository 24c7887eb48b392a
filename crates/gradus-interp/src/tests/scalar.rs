//! Tests of numbers: arithmetic, conversions, poison and undefined bits.

use super::{bits, float, trap_of_ops, value};
use crate::{TrapKind, Value};

#[test]
fn integers_wrap_or_violate_flags() {
    assert_eq!(bits("i8", "%a = add i8 127, i8 1 return %a"), 128);
    assert_eq!(bits("i8", "%a = sdiv i8 -7, i8 2 return %a"), 0xfd);
    assert_eq!(bits("i8", "%a = srem i8 -7, i8 2 return %a"), 0xff);
    assert_eq!(bits("i8", "%a = ashr i8 -8, i8 1 return %a"), 0xfc);
    assert_eq!(bits("i64", "%a = mul 4294967296, 4294967296 return %a"), 0);
    for promise in [
        "add nsw i8 127, i8 1",
        "add nuw i8 255, i8 1",
        "sub nuw i8 1, i8 2",
        "sub nsw i8 -128, i8 1",
        "mul nsw i64 4294967296, 4294967296",
        "shl nuw i8 -128, i8 1",
        "shl nsw i8 64, i8 1",
        "shl i8 1, i8 8",
        "lshr exact i8 3, i8 1",
        "udiv exact i8 3, i8 2",
        "or disjoint i8 3, i8 1",
    ] {
        let ty = if promise.contains("i64") { "i64" } else { "i8" };
        let text = format!("%a = {promise} return %a");
        assert_eq!(value(ty, &text), Value::Poison, "{promise}");
    }
    assert_eq!(bits("i8", "%a = add nsw nuw i8 3, i8 4 return %a"), 7);
    assert_eq!(bits("i8", "%a = shl nuw i8 3, i8 4 return %a"), 48);
}

#[test]
fn wide_integers_are_whole() {
    let text = "%a = mul i128 18446744073709551615, i128 18446744073709551615
                %b = lshr %a, i128 64 %c = trunc %b -> i64 return %c";
    assert_eq!(bits("i64", text), u64::MAX - 1);
    let text = "%a = mul nsw i128 -170141183460469231731687303715884105728, i128 2
                %b = trunc %a -> i64 return %b";
    assert_eq!(value("i64", text), Value::Poison);
}

#[test]
fn divisions_trap() {
    for ops in [
        "%a = udiv 1, 0",
        "%a = srem 1, 0",
        "%a = sdiv -9223372036854775808, -1",
        "%a = sdiv i8 -128, i8 -1",
    ] {
        assert_eq!(trap_of_ops(ops), TrapKind::Division, "{ops}");
    }
    assert_eq!(trap_of_ops("%a = udiv 1, i64 undef"), TrapKind::Undefined);
}

#[test]
fn floats_are_rounded_in_their_own_format() {
    assert_eq!(float("%a = fadd 0.1, 0.2 return %a"), 0.1 + 0.2);
    let a = bits("f32", "%a = fmul f32 0.1, f32 0.2 return %a") as u32;
    assert_eq!(f32::from_bits(a), 0.1f32 * 0.2f32);
    // 2049 is not representable in binary16 and rounds to even.
    assert_eq!(bits("f16", "%a = uitofp i32 2049 -> f16 return %a"), 0x6800);
    assert_eq!(bits("f16", "%a = fptrunc 65520.0 -> f16 return %a"), 0x7c00);
    assert_eq!(
        bits("f16", "%a = fptrunc 5.9604644775390625e-8 -> f16 return %a"),
        1
    );
    assert_eq!(bits("bf16", "%a = fptrunc 1.0 -> bf16 return %a"), 0x3f80);
    assert_eq!(
        float("%a = fpext f16 0x3555 -> f64 return %a"),
        0.333251953125
    );
    assert!(float("%a = fdiv 0.0, 0.0 return %a").is_nan());
    assert_eq!(
        value("f64", "%a = fdiv nnan 0.0, 0.0 return %a"),
        Value::Poison
    );
    assert_eq!(
        value("f64", "%a = fdiv ninf 1.0, 0.0 return %a"),
        Value::Poison
    );
    assert_eq!(bits("f64", "%a = fneg 0.0 return %a"), 1 << 63);
}

#[test]
fn conversions_fit_or_are_poison() {
    assert_eq!(bits("i8", "%a = fptosi -128.9 -> i8 return %a"), 128);
    assert_eq!(
        value("i8", "%a = fptosi 128.0 -> i8 return %a"),
        Value::Poison
    );
    assert_eq!(
        value("i8", "%a = fptoui -1.0 -> i8 return %a"),
        Value::Poison
    );
    assert_eq!(bits("i8", "%a = fptoui -0.9 -> i8 return %a"), 0);
    assert_eq!(bits("i32", "%a = sext i8 -2 -> i32 return %a"), 0xffff_fffe);
    assert_eq!(
        value("i32", "%a = zext nneg i8 -2 -> i32 return %a"),
        Value::Poison
    );
    assert_eq!(
        value("i8", "%a = trunc nuw i32 256 -> i8 return %a"),
        Value::Poison
    );
    assert_eq!(
        bits(
            "i64",
            "%a = bitcast <2 x i32> {i32 1, i32 2} -> i64 return %a"
        ),
        1 | 2 << 32
    );
    let text = "%a = bitcast i64 4607182418800017408 -> <2 x f32>
                %b = extractelement %a, 1 return %b";
    assert_eq!(bits("f32", text), 0x3ff0_0000);
}

#[test]
fn comparisons_order_numbers() {
    for (text, holds) in [
        ("icmp slt i8 -1, i8 1", true),
        ("icmp ult i8 -1, i8 1", false),
        ("fcmp olt 1.0, f64 0x7ff8000000000000", false),
        ("fcmp ult 1.0, f64 0x7ff8000000000000", true),
        ("fcmp one 1.0, 1.0", false),
        ("fcmp ord 1.0, 1.0", true),
        ("fcmp oeq 0.0, -0.0", true),
    ] {
        let own = bits("i1", &format!("%a = {text} return %a"));
        assert_eq!(own == 1, holds, "{text}");
    }
    let text = "%a = icmp samesign slt i8 -1, i8 1 return %a";
    assert_eq!(value("i1", text), Value::Poison);
}

#[test]
fn undefined_bits_propagate() {
    assert_eq!(bits("i8", "%a = and i8 undef, i8 0 return %a"), 0);
    assert_eq!(bits("i8", "%a = or i8 undef, i8 -1 return %a"), 255);
    assert_eq!(
        value("i8", "%a = add i8 undef, i8 1 return %a"),
        Value::UNDEF
    );
    let text = "%a = zext i8 undef -> i64 %b = lshr %a, 8 return %b";
    assert_eq!(bits("i64", text), 0);
    assert_eq!(bits("i8", "%a = freeze i8 poison return %a"), 0);
    assert_eq!(
        value("i8", "%a = select true, i8 poison, i8 1 return %a"),
        Value::Poison
    );
    assert_eq!(
        bits("i8", "%a = select false, i8 poison, i8 1 return %a"),
        1
    );
    assert_eq!(
        trap_of_ops("if i1 poison { yield } else { yield }"),
        TrapKind::Undefined
    );
    assert_eq!(
        trap_of_ops("if i1 undef { yield } else { yield }"),
        TrapKind::Undefined
    );
}

#[test]
fn vectors_work_lane_by_lane() {
    let text = "%a = fadd <2 x f64> {1.0, 2.0}, <2 x f64> splat 2 0.5
                %b = shuffle [1, 0] %a, %a
                %c = call @llvm.vector.reduce.fadd.v2f64(10.0, %b) return %c";
    assert_eq!(float(text), 14.0);
    let text = "%v = insertelement <2 x i32> poison, i32 7, 1
                %a = extractelement %v, 1 return %a";
    assert_eq!(bits("i32", text), 7);
    let text = "%v = insertelement <2 x i32> zero, i32 7, 2
                %a = extractelement %v, 0 return %a";
    assert_eq!(value("i32", text), Value::Poison);
    let text = "%s = insertvalue [1, 0] {f64, {f64, i32}} undef, 3.0
                %a = extractvalue [1, 0] %s return %a";
    assert_eq!(float(text), 3.0);
    let text = "%c = icmp slt <2 x i64> {1, 5}, <2 x i64> splat 2 3
                %a = select %c, <2 x f64> {1.0, 2.0}, <2 x f64> {3.0, 4.0}
                %b = extractelement %a, 1 return %b";
    assert_eq!(float(text), 4.0);
}

#[test]
fn external_functions_execute() {
    assert_eq!(
        float("%a = call @llvm.sqrt.f64(2.0) return %a"),
        2f64.sqrt()
    );
    assert_eq!(float("%a = call @pow(2.0, 0.5) return %a"), 2f64.powf(0.5));
    // erf(1) and Γ(5), from tables.
    assert!((float("%a = call @erf(1.0) return %a") - 0.842_700_792_949_714_9).abs() < 1e-15);
    assert!((float("%a = call @tgamma(5.0) return %a") - 24.0).abs() < 1e-13);
    let sine = bits("f32", "%a = call @sinf(f32 1.0) return %a") as u32;
    assert_eq!(f32::from_bits(sine), 1f32.sin());
    assert_eq!(
        bits("i32", "%a = call @llvm.ctpop.i32(i32 255) return %a"),
        8
    );
    assert_eq!(
        bits("i8", "%a = call @llvm.smax.i8(i8 -1, i8 1) return %a"),
        1
    );
    assert_eq!(
        bits("i16", "%a = call @llvm.bswap.i16(i16 258) return %a"),
        513
    );
    assert_eq!(
        bits("i8", "%a = call @llvm.fptosi.sat.i8.f64(1000.0) return %a"),
        127
    );
    assert_eq!(
        bits(
            "i1",
            "%a = call @llvm.is.fpclass.f64(-0.0, i32 32) return %a"
        ),
        1
    );
    let text = "%a = call @llvm.sadd.with.overflow.i8(i8 127, i8 1)
                %b = extractvalue [1] %a return %b";
    assert_eq!(bits("i1", text), 1);
    assert_eq!(
        trap_of_ops("%a = call @unheard(1.0)"),
        TrapKind::Unsupported
    );
    assert_eq!(trap_of_ops("call @exit(i32 3)"), TrapKind::Exit(3));
    assert_eq!(
        trap_of_ops("%a = foreign 3() -> i32"),
        TrapKind::Unsupported
    );
    assert_eq!(
        trap_of_ops("%a = fadd f80 0x0, f80 0x0"),
        TrapKind::Unsupported
    );
}

#[test]
fn float_classes_are_those_of_the_format() {
    // Signalling and quiet NaN, then −∞ to +∞: one number per class, by bits of the format.
    let classes: [(&str, [u64; 10]); 3] = [
        (
            "f16",
            [
                0x7d00, 0xfe00, 0xfc00, 0xbc00, 0x8001, 0x8000, 0, 0x3ff, 0x400, 0x7c00,
            ],
        ),
        (
            "f32",
            [
                0x7f80_0001,
                0x7fc0_0000,
                0xff80_0000,
                0xbf80_0000,
                0x8000_0001,
                0x8000_0000,
                0,
                0x007f_ffff,
                0x0080_0000,
                0x7f80_0000,
            ],
        ),
        (
            "f64",
            [
                0x7ff0_0000_0000_0001,
                0xfff8_0000_0000_0000,
                0xfff0_0000_0000_0000,
                0xbff0_0000_0000_0000,
                0x8000_0000_0000_0001,
                0x8000_0000_0000_0000,
                0,
                0x000f_ffff_ffff_ffff,
                0x0010_0000_0000_0000,
                0x7ff0_0000_0000_0000,
            ],
        ),
    ];
    for (kind, numbers) in classes {
        for (class, number) in numbers.into_iter().enumerate() {
            let found = (0..10).filter(|bit| {
                let call = format!(
                    "call @llvm.is.fpclass.{kind}({kind} {number:#x}, i32 {})",
                    1 << bit
                );
                bits("i1", &format!("%a = {call} return %a")) == 1
            });
            assert_eq!(found.collect::<Vec<_>>(), [class], "{kind} {number:#x}");
        }
    }
}
