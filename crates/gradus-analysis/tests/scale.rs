//! Scaling tests on large bodies: linear time, and no failure at great depth.

use crate::Program;
use gradus_analysis::{Clobbers, ExitClobbers, Variance};
use gradus_ir::{Body, OpKind};
use std::fmt::Write;
use std::time::Instant;

/// Runs all analyses. Returns the number of clobbered loads and the time in seconds.
fn analyse_all(p: &Program) -> (usize, f64) {
    let start = Instant::now();
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let body: &Body = p.body();
    let loads = body
        .walk(body.root())
        .filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
    let clobbered = loads.filter(|op| c.clobbered_after(*op)).count();
    let variance = Variance::of(&c, &p.effects);
    let first = body.params()[0];
    assert_eq!(variance.loops(first), []);
    (clobbered, start.elapsed().as_secs_f64())
}

fn straight(n: usize) -> Program {
    let mut text = String::from("func @f(%x: ptr) {\n %w = alloca [100000 x f64], 1\n");
    for i in 0..n {
        let _ = writeln!(text, "%a{i} = addr inbounds f64, %w, {i}");
        let _ = writeln!(text, "%v{i} = load %a{i} -> f64");
        let _ = writeln!(text, "%b{i} = addr inbounds f64, %w, {}", i + n);
        let _ = writeln!(text, "store %v{i}, %b{i}");
    }
    text.push_str("return }");
    Program::read(&text)
}

#[test]
fn straight_line_code_is_linear() {
    // Alternates eight runs on a small body with one run on a body eight times as large: interruptions
    // affect both alike. The fastest of several runs of each counts.
    let (small, large) = (straight(2_000), straight(16_000));
    let times = |p: &Program, times: usize| {
        let runs = (0..times).map(|_| analyse_all(p));
        runs.map(|(clobbered, seconds)| {
            assert_eq!(clobbered, 0);
            seconds
        })
        .sum::<f64>()
    };
    let (mut eight, mut one) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        eight = eight.min(times(&small, 8));
        one = one.min(times(&large, 1));
    }
    assert!(one < 4.0 * eight, "{eight} s and {one} s");
}

#[test]
fn twenty_thousand_nested_exits() {
    let mut text = String::from("func @f(%x: ptr, %c: i1) {\n");
    let depth = 20_000;
    for i in 0..depth {
        let _ = writeln!(text, "%v{i} = load %x -> f64\nif %c {{ yield }} else {{");
    }
    text.push_str("store 1.0, %x\n");
    for _ in 0..depth {
        text.push_str("yield }\n");
    }
    text.push_str("return }");
    let (clobbered, seconds) = analyse_all(&Program::read(&text));
    assert_eq!(clobbered, depth);
    assert!(seconds < 5.0, "{seconds} s");
}

#[test]
fn two_hundred_nested_loops() {
    let mut text = String::from("func @f(%x: ptr, %n: i64) {\n");
    for i in 0..200 {
        let _ = writeln!(text, "for %i{i} < %n {{ %v{i} = load %x -> f64");
    }
    for _ in 0..200 {
        text.push_str("yield }\n");
    }
    text.push_str("return }");
    let p = Program::read(&text);
    let (clobbered, seconds) = analyse_all(&p);
    assert_eq!(clobbered, 0);
    assert!(seconds < 5.0, "{seconds} s");
}

#[test]
fn a_chain_of_five_thousand_calls() {
    let mut text = String::from("func @g0(%x: ptr) { store 1.0, %x return }\n");
    for i in 1..5_000 {
        let _ = writeln!(
            text,
            "func @g{i}(%x: ptr) {{ call @g{}(%x) return }}",
            i - 1
        );
    }
    text.push_str("func @f(%x: ptr) { %v = load %x -> f64 call @g4999(%x) return }");
    let p = Program::read(&text);
    assert_eq!(analyse_all(&p).0, 1);
}
