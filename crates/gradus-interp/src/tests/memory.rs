//! Tests of memory: bounds, lifetimes, initialisation, addresses.

use super::{HEAD, bits, float, trap_of_ops, unit, value};
use crate::{Machine, TrapKind, Value};

#[test]
fn stored_values_are_loaded() {
    let text = "%p = alloca [4 x f64], 1 %q = addr inbounds f64, %p, 2
                store 3.5, %q %a = load %q -> f64 return %a";
    assert_eq!(float(text), 3.5);
    let text = "%p = alloca {i8, i32}, 1
                store {i8, i32} {i8 1, i32 2}, %p %q = addr inbounds {i8, i32}, %p, 0, i32 1
                %a = load %q -> i32 return %a";
    assert_eq!(bits("i32", text), 2);
    let text = "%p = alloca i64, 1 store -1, %p store i1 true, %p
                %a = load %p -> i64 return %a";
    assert_eq!(bits("i64", text), 0xffff_ffff_ffff_ff01);
    let text = "%p = alloca <8 x i1>, 1 store <8 x i1> {true, false, true, false, false, false, false, true}, %p
                %a = load %p -> i8 return %a";
    assert_eq!(bits("i8", text), 0b1000_0101);
    assert_eq!(
        float("%q = addr f64, @table, 2 %a = load %q -> f64 return %a"),
        4.0
    );
    let text = "%a = load @count -> i64 %b = add %a, 1 store %b, @count
                %c = load @count -> i64 return %c";
    assert_eq!(bits("i64", text), 8);
}

#[test]
fn accesses_stay_inside_living_objects() {
    for (ops, kind) in [
        (
            "%p = alloca f64, 1 %q = addr f64, %p, 1 %a = load %q -> f64",
            TrapKind::OutOfBounds,
        ),
        (
            "%p = alloca f64, 1 %q = addr f64, %p, -1 store 1.0, %q",
            TrapKind::OutOfBounds,
        ),
        ("%a = load null -> f64", TrapKind::BadAddress),
        (
            "%p = inttoptr 4096 -> ptr %a = load align 1 %p -> i8",
            TrapKind::BadAddress,
        ),
        (
            "%p = call @malloc(8) call @free(%p) store 1.0, %p",
            TrapKind::UseAfterFree,
        ),
        (
            "%p = call @malloc(8) call @free(%p) call @free(%p)",
            TrapKind::BadFree,
        ),
        ("%p = alloca f64, 1 call @free(%p)", TrapKind::BadFree),
        (
            "%p = call @malloc(8) %q = addr i8, %p, 4 call @free(%q)",
            TrapKind::BadFree,
        ),
        ("store 1.0, @table", TrapKind::ReadOnly),
        ("store i8 1, @f", TrapKind::ReadOnly),
        (
            "%p = alloca f64, 1 %q = addr i8, %p, 4 store align 8 i32 1, %q",
            TrapKind::Misaligned,
        ),
        ("%p = call @malloc(i64 undef)", TrapKind::Undefined),
        ("%a = load ptr undef -> i8", TrapKind::Undefined),
        (
            "%p = alloca f64, 1 %q = addr inbounds f64, %p, 2 %a = load %q -> f64",
            TrapKind::Undefined,
        ),
    ] {
        assert_eq!(trap_of_ops(ops), kind, "{ops}");
    }
}

#[test]
fn uninitialised_bytes_are_known() {
    assert_eq!(
        value("f64", "%p = call @malloc(8) %a = load %p -> f64 return %a"),
        Value::UNDEF
    );
    let text = "%p = call @malloc(8) store i32 5, %p %a = load %p -> i64
                %b = and %a, 4294967295 return %b";
    assert_eq!(bits("i64", text), 5);
    // Copies of words include padding; undefined padding is legal.
    let text = "%p = alloca {i32, i64}, 1 %q = alloca {i32, i64}, 1
                store {i32, i64} {i32 3, 4}, %p %w = load %p -> i64 store %w, %q
                %a = load %q -> i32 return %a";
    assert_eq!(bits("i32", text), 3);
    let ops = "%p = alloca i1, 1 %a = load %p -> i1 if %a { yield } else { yield }";
    assert_eq!(trap_of_ops(ops), TrapKind::Undefined);
    let text = "%p = call @calloc(2, 8) %q = addr f64, %p, 1 %a = load %q -> f64 return %a";
    assert_eq!(float(text), 0.0);
    let text = "%p = alloca i64, 1 store i64 poison, %p %a = load %p -> i8 return %a";
    assert_eq!(value("i8", text), Value::Poison);
}

#[test]
fn blocks_are_copied_filled_and_grown() {
    let text = "%p = call @malloc(16) store 1.5, %p
                %q = call @realloc(%p, 32) %a = load %q -> f64 call @free(%q) return %a";
    assert_eq!(float(text), 1.5);
    let text = "%p = alloca [3 x f64], 1 call @llvm.memcpy.p0.p0.i64(%p, @table, 24, false)
                %q = addr f64, %p, 1 %a = load %q -> f64 return %a";
    assert_eq!(float(text), 2.0);
    let ops = "%p = alloca [3 x f64], 1 %q = addr f64, %p, 1
               call @llvm.memcpy.p0.p0.i64(%q, %p, 16, false)";
    assert_eq!(trap_of_ops(ops), TrapKind::OutOfBounds);
    let text = "%p = alloca i32, 1 call @llvm.memset.p0.i64(%p, i8 1, 4, false)
                %a = load %p -> i32 return %a";
    assert_eq!(bits("i32", text), 0x0101_0101);
}

#[test]
fn stack_objects_die_on_return() {
    let text = "func @g() -> ptr { %p = alloca f64, 1 store 1.0, %p return %p }
                func @f() -> f64 { %p = call @g() %a = load %p -> f64 return %a }";
    assert_eq!(super::trap(text), TrapKind::UseAfterFree);
}

#[test]
fn atomics_exchange() {
    let text = "%p = alloca i64, 1 store 5, %p
                %a = atomicrmw add seq_cst %p, 3
                %b = cmpxchg seq_cst failure monotonic %p, 8, 9
                %c = cmpxchg seq_cst failure monotonic %p, 8, 10
                %d = atomicrmw max monotonic %p, 2
                %e = extractvalue [0] %c %f = mul %a, 100 %g = add %e, %f return %g";
    assert_eq!(bits("i64", text), 509);
}

#[test]
fn globals_hold_addresses() {
    let text = "
        global @x: [2 x i32] = [10, 20]
        global @p: ptr = zero 8 relocations(0: @x+4)
        global @q: ptr = zero 8 relocations(0: @h)
        func @h() -> i32 { return i32 5 }
        func @f() -> i32 {
          %p = load @p -> ptr %a = load %p -> i32
          %q = load @q -> ptr %b = call %q() : fn() -> i32
          %c = add %a, %b return %c }";
    assert_eq!(super::run(text), Ok(Some(Value::i32(25))));
    let ops = "%a = call @table() : fn() -> i32";
    assert_eq!(trap_of_ops(ops), TrapKind::BadCall);
}

#[test]
fn arrays_are_allocated_and_read() {
    let unit = unit(
        "func @scale(%n: i64, %x: ptr, %y: ptr) {
           for %i < %n { %p = addr f64, %x, %i %a = load %p -> f64 %b = fmul %a, 2.0
             %q = addr f64, %y, %i store %b, %q yield }
           return }",
    );
    let mut machine = Machine::new(&unit);
    let x = machine.alloc_f64(&[1.0, 2.0, 3.0]).expect("it fits");
    let y = machine.alloc_undefined(24).expect("it fits");
    let args = [Value::i64(3), Value::ptr(x), Value::ptr(y)];
    assert_eq!(machine.call("scale", &args), Ok(None));
    assert_eq!(machine.read_f64(y, 3), Ok(vec![2.0, 4.0, 6.0]));
    let args = [Value::i64(4), Value::ptr(x), Value::ptr(y)];
    let trap = machine.call("scale", &args).expect_err("it reads too far");
    assert_eq!(
        (trap.kind, trap.function.as_str()),
        (TrapKind::OutOfBounds, "scale")
    );
    assert_eq!(trap.op, "%a = load %p -> f64");
    let z = machine.alloc_undefined(8).expect("it fits");
    assert_eq!(
        machine.read_f64(z, 1).map_err(|t| t.kind),
        Err(TrapKind::Undefined)
    );
}

#[test]
fn output_is_captured() {
    let text = format!(
        "{HEAD}global @t: [27 x i8] = hex \"25643a252e33663a2567202533647c252d33647c202530336c640a00\"
         func @f() {{ %n = call @printf(@t, i32 -5, 2.0, 0.5, i32 7, i32 8, 9) return }}"
    );
    let text = text.replace("[27 x i8]", "[28 x i8]");
    let unit = unit(&text);
    let mut machine = Machine::new(&unit);
    assert_eq!(machine.call("f", &[]), Ok(None));
    assert_eq!(machine.output(), b"-5:2.000:0.5   7|8  | 009\n");
}

/// C pads infinities and NaNs with spaces, and hexadecimal numbers after the prefix.
#[test]
fn zero_padding_is_that_of_c() {
    let format = b"%08f|%08.2f|%-6F|%08g|%#08x|%#06X|\0";
    let hex: String = format.iter().map(|b| format!("{b:02x}")).collect();
    let text = format!(
        "{HEAD}global @t: [{} x i8] = hex \"{hex}\"
         func @f() {{ %n = call @printf(@t, f64 0x7ff0000000000000, f64 0xfff0000000000000,
           f64 0x7ff0000000000000, f64 0x7ff8000000000000, i32 2748, i32 -1) return }}",
        format.len()
    );
    let unit = unit(&text);
    let mut machine = Machine::new(&unit);
    assert_eq!(machine.call("f", &[]), Ok(None));
    let output = String::from_utf8_lossy(machine.output()).into_owned();
    assert_eq!(
        output,
        "     inf|    -inf|INF   |     nan|0x000abc|0XFFFFFFFF|"
    );
}
