//! Every pass on small programs: expected rewrites, and cases that must stay unchanged.

use gradus_analysis::{AliasOptions, CallGraph, Effects, PassContext};
use gradus_ir::{Unit, parse, print_function, verify_function};
use gradus_simplify::pass;

/// Runs passes on the first function of a text and returns the printed result.
fn after_passes(passes: &str, text: &str) -> String {
    let mut unit: Unit = parse(text, "test.gir").unwrap_or_else(|e| panic!("{e:?}"));
    let func = unit
        .functions
        .ids()
        .find(|&f| unit.functions[f].body.is_some())
        .expect("a function with a body");
    let closure = CallGraph::of(&unit, &[func]);
    let effects = Effects::of(&unit, &closure);
    let alias = AliasOptions::default();
    let facts = PassContext {
        function: Some(func),
        effects: &effects,
        alias: &alias,
    };
    let mut body = *unit.functions[func].body.take().expect("a body");
    for name in passes.split(' ') {
        (pass(name).expect("a pass of that name").run)(&mut unit, &mut body, &facts);
    }
    unit.functions[func].body = Some(Box::new(body));
    let broken = verify_function(&unit, func);
    assert!(
        broken.is_empty(),
        "{broken:?}\n{}",
        print_function(&unit, func)
    );
    print_function(&unit, func)
}

/// Returns the lines between the first and the last, without indentation.
fn inner_lines(text: &str) -> Vec<&str> {
    let all: Vec<&str> = text.trim().lines().map(str::trim).collect();
    all[1..all.len() - 1].to_vec()
}

fn expect_result(passes: &str, text: &str, expected: &[&str]) {
    let text = after_passes(passes, text);
    assert_eq!(inner_lines(&text), expected, "{text}");
}

#[test]
fn exact_identities_are_folded() {
    for (op, value) in [
        ("fadd %x, -0.0", "%x"),
        ("fsub %x, 0.0", "%x"),
        ("fmul %x, 1.0", "%x"),
        ("fdiv %x, 1.0", "%x"),
        ("fadd 2.0, 0.5", "2.5"),
        ("select true, %x, %y", "%x"),
        ("select %c, %x, %x", "%x"),
    ] {
        let text =
            format!("func @f(%x: f64, %y: f64, %c: i1) -> f64 {{\n  %r = {op}\n  return %r\n}}\n");
        expect_result("fold", &text, &[&format!("return {value}")]);
    }
}

#[test]
fn inexact_identities_are_not_folded() {
    for op in [
        "fadd %x, 0.0",
        "fsub %x, -0.0",
        "fmul %x, 0.0",
        "fsub %x, %x",
        "fdiv %x, %x",
        "fdiv 0.0, 0.0",
        "fmul 1e-300, 1e-300",
    ] {
        let text = format!("func @f(%x: f64) -> f64 {{\n  %r = {op}\n  return %r\n}}\n");
        let result = after_passes("fold", &text);
        let kept = inner_lines(&result).len() == 2;
        assert!(kept || op.starts_with("fmul 1e-300"), "{op}: {result}");
    }
    // The sign of a zero sum, which `nsz` ignores.
    let text = "func @f(%x: f64) -> f64 {\n  %r = fadd nsz %x, 0.0\n  return %r\n}\n";
    expect_result("fold", text, &["return %x"]);
}

#[test]
fn negations_move_into_sums() {
    let text = "func @f(%x: f64, %y: f64) -> f64 {
        %a = fneg %x
        %b = fadd %y, %a
        %c = fneg %b
        %d = fneg %c
        return %d
    }";
    expect_result("fold", text, &["%0 = fsub %y, %x", "return %0"]);
}

#[test]
fn integers_are_folded() {
    for (op, value) in [
        ("add %n, 0", "%n"),
        ("mul %n, 1", "%n"),
        ("mul %n, 0", "0"),
        ("and %n, 0", "0"),
        ("and %n, -1", "%n"),
        ("sub %n, %n", "0"),
        ("xor %n, %n", "0"),
        ("shl 1, 5", "32"),
        ("sdiv -7, 2", "-3"),
    ] {
        let text = format!("func @f(%n: i64) -> i64 {{\n  %r = {op}\n  return %r\n}}\n");
        expect_result("fold", &text, &[&format!("return {value}")]);
    }
    for op in ["udiv 1, 0", "sdiv %n, 0", "shl 1, 64", "udiv %n, %n"] {
        let text = format!("func @f(%n: i64) -> i64 {{\n  %r = {op}\n  return %r\n}}\n");
        assert_eq!(inner_lines(&after_passes("fold", &text)).len(), 2, "{op}");
    }
}

#[test]
fn truncated_and_extended_index_folds() {
    let text = "func @f(%n: i64) -> i64 {
        %a = trunc nsw %n -> i32
        %b = sext %a -> i64
        return %b
    }";
    expect_result("fold", text, &["return %n"]);
    let text = "func @f(%n: i64) -> i64 {
        %a = trunc %n -> i32
        %b = sext %a -> i64
        return %b
    }";
    assert_eq!(inner_lines(&after_passes("fold", text)).len(), 3);
}

#[test]
fn sign_masks_become_float_ops() {
    let text = "func @f(%x: f64) -> f64 {
        %a = bitcast %x -> i64
        %b = and %a, 9223372036854775807
        %c = bitcast %b -> f64
        return %c
    }";
    expect_result(
        "float-bit-idioms",
        text,
        &["%0 = call @llvm.fabs.f64(%x)", "return %0"],
    );
    let text = "func @f(%x: f64) -> f64 {
        %a = bitcast %x -> i64
        %b = xor %a, -9223372036854775808
        %c = bitcast %b -> f64
        return %c
    }";
    expect_result("float-bit-idioms", text, &["%0 = fneg %x", "return %0"]);
    let text = "func @f(%x: f64, %y: f64) -> f64 {
        %a = bitcast %x -> i64
        %b = and %a, 9223372036854775807
        %c = bitcast %y -> i64
        %d = and %c, -9223372036854775808
        %e = or %d, %b
        %f = bitcast %e -> f64
        return %f
    }";
    expect_result(
        "float-bit-idioms",
        text,
        &["%0 = call @llvm.copysign.f64(%x, %y)", "return %0"],
    );
    // A poison lane may have any value.
    let text = "func @f(%x: <2 x f32>) -> <2 x f32> {
        %a = bitcast %x -> <2 x i32>
        %b = xor %a, <2 x i32> {-2147483648, poison}
        %c = bitcast %b -> <2 x f32>
        return %c
    }";
    let printed = after_passes("float-bit-idioms", text);
    let said = inner_lines(&printed);
    assert!(
        said[0].contains("fneg") && said[1].contains("shuffle"),
        "{said:?}"
    );
    // A mask of other bits is no sign operation.
    let text = "func @f(%x: f64) -> f64 {
        %a = bitcast %x -> i64
        %b = and %a, 4611686018427387903
        %c = bitcast %b -> f64
        return %c
    }";
    assert_eq!(
        inner_lines(&after_passes("float-bit-idioms", text)).len(),
        4
    );
}

#[test]
fn float_bits_use_float_accesses() {
    let text = "func @f(%p: ptr, %q: ptr) -> f64 {
        %a = load align 8 %p -> i64
        %x = bitcast %a -> f64
        %b = bitcast %x -> i64
        store align 8 %b, %q
        return %x
    }";
    expect_result(
        "float-bit-idioms",
        text,
        &["%0 = load %p -> f64", "store %0, %q", "return %0"],
    );
}

#[test]
fn branch_on_constant_becomes_its_arm() {
    let text = "func @f(%x: f64) -> f64 {
        %r = if false -> f64 {
            yield %x
        } else {
            %y = fadd %x, %x
            yield %y
        }
        return %r
    }";
    expect_result("control-flow", text, &["%y = fadd %x, %x", "return %y"]);
}

#[test]
fn empty_branch_becomes_select() {
    let text = "func @f(%c: i1, %x: f64, %y: f64) -> f64 {
        %r, %s = if %c -> f64, f64 {
            yield %x, %y
        } else {
            yield %y, %y
        }
        %t = fadd %r, %s
        return %t
    }";
    expect_result(
        "control-flow",
        text,
        &["%0 = select %c, %x, %y", "%t = fadd %0, %y", "return %t"],
    );
}

#[test]
fn short_trip_loops_are_unfolded() {
    let text = "func @f(%x: f64) -> f64 {
        %r = for %i < 1 iter(%a = %x) {
            %b = fmul %a, 2.0
            yield %b
        }
        %s = for %j < 0 iter(%c = %r) {
            yield 0.0
        }
        return %s
    }";
    expect_result("control-flow", text, &["%b = fmul %x, 2.0", "return %b"]);
    let text = "func @f(%x: f64) -> f64 {
        %r = loop iter(%a = %x) -> f64 {
            %b = fmul %a, 2.0
            repeat false, %b, %b
        }
        return %r
    }";
    expect_result("control-flow", text, &["%b = fmul %x, 2.0", "return %b"]);
}

#[test]
fn constant_carried_value_is_replaced() {
    let text = "func @f(%n: i64, %c: i1, %x: f64, %p: ptr) -> f64 {
        %r, %s = for %i < %n iter(%a = %x, %b = 0.0) {
            %m = if %c -> f64 {
                store 1.0, %p
                yield %x
            } else {
                yield %a
            }
            %d = fadd %b, %a
            yield %m, %d
        }
        %t = fadd %r, %s
        return %t
    }";
    let result = after_passes("loop-carried dce", text);
    assert!(result.contains("for %i < %n iter(%b = 0.0)"), "{result}");
    assert!(result.contains("%t = fadd %x, %r"), "{result}");
    // A value changed in one arm is not constant.
    let changing = text.replace("yield %x\n", "yield 2.0\n");
    assert!(after_passes("loop-carried dce", &changing).contains("%a = %x"));
}

#[test]
fn square_sums_start_with_minus_zero() {
    let text = "func @f(%n: i64, %x: f64, %y: f64) -> f64 {
        %r = for %i < 3 iter(%a = 0.0) {
            %s = fmul %x, %x
            %d = fadd %a, %s
            yield %d
        }
        return %r
    }";
    let begins = |text: &str| {
        let after = after_passes("loop-carried", text);
        let minus = after.contains("(%a = -0.0)");
        assert!(minus || after.contains("(%a = 0.0)"), "{after}");
        minus
    };
    assert!(begins(text));
    for (from, to) in [
        // The loop may not execute, the product may be −0, or the partial sum has another use.
        ("%i < 3", "%i < %n"),
        ("fmul %x, %x", "fmul %x, %y"),
        ("fmul %x, %x", "fmul %a, %a"),
        ("fadd %a, %s", "fsub %a, %s"),
    ] {
        assert!(!begins(&text.replace(from, to)), "{to}");
    }
}

#[test]
fn available_equal_ops_are_merged() {
    let text = "func @f(%c: i1, %x: f64, %y: f64) -> f64 {
        %a = fmul nnan %x, %y
        %r = if %c -> f64 {
            %b = fmul %y, %x
            yield %b
        } else {
            %d = fdiv %x, %y
            yield %d
        }
        %e = fdiv %x, %y
        %s = fadd %r, %a
        %t = fadd %s, %e
        return %t
    }";
    let result = after_passes("cse", text);
    assert!(
        result.contains("yield %a") && !result.contains("nnan"),
        "{result}"
    );
    assert_eq!(result.matches("fdiv").count(), 2, "{result}");
}

#[test]
fn loads_are_forwarded_until_clobber() {
    let text = "func @f(%p: ptr, %q: ptr, %x: f64) -> f64 {
        %a = alloca f64, 1
        store %x, %a
        %l = load %p -> f64
        store 1.0, %q
        %m = load %p -> f64
        %n = load %a -> f64
        %k = load %p -> f64
        %s = fadd %l, %m
        %t = fadd %s, %n
        %u = fadd %t, %k
        return %u
    }";
    let result = after_passes("load-forwarding", text);
    assert_eq!(result.matches("load").count(), 2, "{result}");
    assert!(
        result.contains("fadd %s, %x") && result.contains("fadd %t, %m"),
        "{result}"
    );
}

#[test]
fn variant_ops_stay_in_loops() {
    let text = "func @f(%n: i64, %p: ptr, %x: f64, %y: f64) -> f64 {
        %r = for %i < %n iter(%a = 0.0) {
            %k = mul %n, 3
            %j = add %i, %k
            %q = fdiv %x, %y
            %e = load %p -> f64
            %s = fadd %a, %q
            %t = fadd %s, %e
            %v = sitofp %j -> f64
            %w = fadd %t, %v
            yield %w
        }
        return %r
    }";
    let result = after_passes("licm", text);
    let before_loop = result.split("for %i").next().unwrap_or_default();
    assert!(before_loop.contains("mul %n, 3"), "{result}");
    // The loop may not execute: a division by zero has an infinite derivative, a load may fault.
    assert!(
        !before_loop.contains("fdiv") && !before_loop.contains("load"),
        "{result}"
    );
    // With at least one iteration, both ops are hoisted.
    let sure = text.replace("for %i < %n", "for %i < 7");
    let result = after_passes("licm", &sure);
    let before_loop = result.split("for %i").next().unwrap_or_default();
    assert!(
        before_loop.contains("fdiv") && before_loop.contains("load"),
        "{result}"
    );
    // A load from memory that the loop writes is not hoisted.
    let writing = sure.replace("%s = fadd %a, %q", "store %a, %p\n %s = fadd %a, %q");
    let result = after_passes("licm", &writing);
    let before_loop = result.split("for %i").next().unwrap_or_default();
    assert!(!before_loop.contains("load"), "{result}");
}

/// `if (n > 0) do { … } while (++i < *bound)`, with float stores between the loads of the bound.
#[test]
fn loop_bound_load_is_hoisted() {
    let text = "tbaa 0 = \"root\" ()
tbaa 1 = \"char\" (0: 0)
tbaa 2 = \"double\" (0: 1)
tbaa 3 = \"int\" (0: 1)
func @f(%bound: ptr, %p: ptr) -> void {
        %n = load %bound -> i64 !tbaa(3, 3, 0)
        %c = icmp sgt %n, 0
        if %c {
            loop iter(%i = 0) {
                %q = addr inbounds f64, %p, %i
                store 1.0, %q !tbaa(2, 2, 0)
                %j = add nsw %i, 1
                %m = load %bound -> i64 !tbaa(3, 3, 0)
                %again = icmp slt %j, %m
                repeat %again, %j
            }
            yield
        } else {
            yield
        }
        return
    }";
    let result = after_passes("load-forwarding loop-to-for fold dce", text);
    assert!(
        !result.contains("loop") && !result.contains("if "),
        "{result}"
    );
    assert_eq!(result.matches("load").count(), 1, "{result}");
}

#[test]
fn dead_structure_is_removed() {
    let text = "func @f(%n: i64, %c: i1, %x: f64) -> f64 {
        %r, %s = for %i < %n iter(%a = %x, %b = 0.0) {
            %d = fadd %a, 1.0
            %e = fadd %b, %d
            yield %d, %e
        }
        %u = if %c -> f64 {
            %v = fmul %x, %x
            yield %v
        } else {
            yield 0.0
        }
        return %r
    }";
    expect_result(
        "dce",
        text,
        &[
            "%r = for %i < %n iter(%a = %x) {",
            "%d = fadd %a, 1.0",
            "yield %d",
            "}",
            "return %r",
        ],
    );
}

#[test]
fn live_ops_are_kept() {
    let text = "func @f(%c: i1, %p: ptr) -> void {
        loop {
            repeat %c
        }
        if %c {
            store 1.0, %p
            yield
        } else {
            yield
        }
        return
    }";
    let result = after_passes("dce", text);
    assert!(
        result.contains("loop") && result.contains("store"),
        "{result}"
    );
}

/// An executed body keeps a conditional step: a sum with a selected amount is slower.
#[test]
fn steps_run_only_for_differentiation() {
    let text = "func @f(%n: i64, %c: i1, %p: ptr) -> void {
        %q = if %c -> ptr { store 1.0, %p %next = addr f64, %p, %n yield %next } else { yield %p }
        store 5.0, %q
        return }";
    let chooses = |run: fn(&mut Unit, &mut gradus_ir::Body, &PassContext) -> bool| {
        let mut unit: Unit = parse(text, "test.gir").unwrap_or_else(|e| panic!("{e:?}"));
        let func = unit.function("f").expect("it is there");
        let effects = Effects::of(&unit, &CallGraph::of(&unit, &[func]));
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &AliasOptions::default(),
        };
        let mut body = unit.functions[func].body.take().expect("a body");
        run(&mut unit, &mut body, &facts);
        unit.functions[func].body = Some(body);
        print_function(&unit, func).contains("select")
    };
    assert!(chooses(gradus_simplify::simplify));
    assert!(!chooses(gradus_simplify::simplify_for_execution));
}
