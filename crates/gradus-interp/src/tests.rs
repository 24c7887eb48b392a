//! Tests of the interpreter: semantics and traps.

mod access_trace;
mod edges;
mod memory;
mod parallel;
mod races;
mod scalar;
mod speed;
mod structure;

use crate::{Machine, Options, Trap, TrapKind, Value};
use gradus_ir::{Unit, parse, verify};

/// Parses and verifies a unit.
fn unit(text: &str) -> Unit {
    let unit = match parse(text, "test.gir") {
        Ok(unit) => unit,
        Err(e) => panic!("{e}: {:?}\n{text}", e.labels),
    };
    let findings = verify(&unit);
    assert!(findings.is_empty(), "{findings:#?}\n{text}");
    unit
}

/// Runs `@f` without arguments, and checks that the run follows the control edges.
fn run(text: &str) -> Result<Option<Value>, Trap> {
    let unit = unit(text);
    let options = Options {
        check_edges: true,
        ..Options::default()
    };
    let traced = Machine::with_options(&unit, options).call("f", &[]);
    let plain = Machine::new(&unit).call("f", &[]);
    assert_eq!(plain, traced);
    plain
}

/// Returns the value of an expression: ops of a body that ends in `return`, of type `ty`.
fn value(ty: &str, ops: &str) -> Value {
    let text = format!("{HEAD}func @f() -> {ty} {{ {ops}\n }}");
    match run(&text) {
        Ok(Some(value)) => value,
        other => panic!("{other:?}: {ops}"),
    }
}

fn bits(ty: &str, ops: &str) -> u64 {
    value(ty, ops)
        .bits()
        .unwrap_or_else(|| panic!("not defined: {ops}"))
}

fn float(ops: &str) -> f64 {
    f64::from_bits(bits("f64", ops))
}

fn trap(text: &str) -> TrapKind {
    match run(text) {
        Err(trap) => trap.kind,
        Ok(value) => panic!("it returned {value:?}: {text}"),
    }
}

/// Returns the kind of trap raised by the ops of a body without result.
fn trap_of_ops(ops: &str) -> TrapKind {
    trap(&format!("{HEAD}func @f() -> void {{ {ops}\n return }}"))
}

const HEAD: &str = "
declare @malloc(i64) -> ptr
declare @calloc(i64, i64) -> ptr
declare @realloc(ptr, i64) -> ptr
declare @free(ptr) -> void
declare @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1) -> void
declare @llvm.memset.p0.i64(ptr, i8, i64, i1) -> void
declare @llvm.sqrt.f64(f64) -> f64
declare @llvm.ctpop.i32(i32) -> i32
declare @llvm.smax.i8(i8, i8) -> i8
declare @llvm.sadd.with.overflow.i8(i8, i8) -> {i8, i1}
declare @llvm.vector.reduce.fadd.v2f64(f64, <2 x f64>) -> f64
declare @llvm.fptosi.sat.i8.f64(f64) -> i8
declare @llvm.is.fpclass.f64(f64, i32) -> i1
declare @llvm.is.fpclass.f32(f32, i32) -> i1
declare @llvm.is.fpclass.f16(f16, i32) -> i1
declare @llvm.bswap.i16(i16) -> i16
declare @erf(f64) -> f64
declare @tgamma(f64) -> f64
declare @sinf(f32) -> f32
declare @pow(f64, f64) -> f64
declare @unheard(f64) -> f64
declare @printf(ptr, ...) -> i32
declare @exit(i32) -> void
global @table: [3 x f64] const = [1.0, 2.0, 4.0]
global @count: i64 = [7]
";
