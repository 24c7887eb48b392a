//! Tests of the verifier: each broken text violates exactly one rule; sound texts violate none.

use super::{Rule, verify};
use crate::{Code, Diagnostic, OpKind, Unit, parse};
use std::collections::BTreeSet;

fn read(text: &str) -> Unit {
    match parse(text, "rule.gir") {
        Ok(unit) => unit,
        Err(e) => panic!("{e}: {:?}\n{text}", e.labels),
    }
}

/// Returns the numbers of the violated rules.
fn rules(findings: &[Diagnostic]) -> BTreeSet<&str> {
    findings.iter().map(|f| &f.message[..4]).collect()
}

const HEAD: &str = "
type $pair = {f64, i32}
declare @g(f64) -> f64
declare @v(ptr, ...) -> void
global @x: i64 = [1]
";

/// Texts that break one rule, in a function `f(%c: i1, %n: i64, %d: f64, %p: ptr, %w: <2 x f64>)`.
// table
const BROKEN: &[(Rule, &str)] = &[
    (Rule::LastTerminates, "%a = fadd %d, %d"),
    (Rule::LastTerminates, "return\n return"),
    (Rule::LastTerminates, "if %c { } else { yield } return"),
    (Rule::OperandCount, "%a = fadd %d -> f64 return"),
    (Rule::ResultCount, "fadd %d, %d -> () return"),
    (Rule::RegionCount, "if %c { yield } return"),
    (
        Rule::RegionCount,
        "switch %n case 1 { yield } case 1 { yield } default { yield } return",
    ),
    (Rule::RegionCount, "switch %n case 1 { yield } return"),
    (Rule::TerminatorFits, "yield"),
    (Rule::TerminatorFits, "loop { yield } return"),
    (
        Rule::TerminatorFits,
        "if %c { repeat %c } else { yield } return",
    ),
    (
        Rule::YieldFits,
        "%a = if %c -> f64 { yield %d } else { yield } return",
    ),
    (
        Rule::YieldFits,
        "%a = for %i < %n iter(%s = %d) { yield %i } return",
    ),
    (Rule::YieldFits, "scope { yield %d } return"),
    (
        Rule::RepeatFits,
        "%a = loop iter(%s = %d) -> f64 { repeat %c, %s } return",
    ),
    (Rule::RepeatFits, "loop { repeat %n } return"),
    (Rule::ReturnFits, "return %d"),
    (Rule::ReturnFits, "if %c { return } else { yield } return"),
    (Rule::ReturnFits, "par.for %i < %n { musttail_here } return"),
    (Rule::RegionParams, "for %n { yield } return"),
    (
        Rule::RegionParams,
        "if %c { |%z: i1| yield } else { yield } return",
    ),
    (Rule::RegionParams, "for %n { |%z: i32| yield } return"),
    (
        Rule::RegionParams,
        "spmd block %n { |%z: i64| yield } return",
    ),
    (
        Rule::Visible,
        "if %c { %a = fadd %d, %d yield } else { yield } %b = fadd %a, %d return",
    ),
    (
        Rule::Visible,
        "%b = fadd %a, %d -> f64 %a = fadd %d, %d return",
    ),
    (
        Rule::Visible,
        "%a = if %c -> f64 { yield %a } else { yield %d } return",
    ),
    (Rule::Visible, "%a = fadd %a, %d -> f64 return"),
    (Rule::ConstantFits, "foreign 0(f64 {1.0}) return"),
    (Rule::ConstantFits, "foreign 0(f64 @g) return"),
    (Rule::ConstantFits, "foreign 0([2 x f64] {1.0}) return"),
    (Rule::ResultType, "%a = fadd %d, %d -> f32 return"),
    (Rule::ResultType, "%a = icmp eq %n, %n -> i8 return"),
    (Rule::ResultType, "%a = call @g(%d) -> f32 return"),
    (Rule::Arithmetic, "%a = fadd %n, %n return"),
    (Rule::Arithmetic, "%a = add %d, %d return"),
    (Rule::Arithmetic, "%a = add %n, i32 1 return"),
    (Rule::Arithmetic, "%a = fneg %n return"),
    (Rule::CastFits, "%a = trunc %n -> i64 return"),
    (Rule::CastFits, "%a = zext %n -> i32 return"),
    (Rule::CastFits, "%a = bitcast %n -> ptr return"),
    (Rule::CastFits, "%a = bitcast %n -> f32 return"),
    (Rule::CastFits, "%a = sitofp %n -> <2 x f64> return"),
    (Rule::CastFits, "%a = fpext %d -> f32 return"),
    (Rule::CompareFits, "%a = icmp eq %d, %d return"),
    (Rule::CompareFits, "%a = icmp eq %n, i32 0 return"),
    (Rule::CompareFits, "%a = fcmp oeq %n, %n return"),
    (Rule::SelectFits, "%a = select %n, %d, %d return"),
    (Rule::SelectFits, "%a = select %c, %d, %n return"),
    (Rule::SelectFits, "%a = select <2 x i1> zero, %d, %d return"),
    (Rule::LaneFits, "%a = extractelement %w, %d return"),
    (Rule::LaneFits, "%a = insertelement %w, %n, 0 return"),
    (Rule::LaneFits, "%a = shuffle [4] %w, %w return"),
    (
        Rule::MemberFits,
        "%a = insertvalue [1] $pair undef, %d return",
    ),
    (
        Rule::MemberFits,
        "%a = insertvalue [] $pair undef, $pair undef return",
    ),
    (
        Rule::MemberFits,
        "%a = insertvalue [0, 0] $pair undef, %d return",
    ),
    (Rule::Pointer, "%a = load align 8 %n -> f64 return"),
    (Rule::Pointer, "store %p, %d return"),
    (Rule::Pointer, "%a = alloca f64, %d return"),
    (Rule::Alignment, "%a = load align 3 %p -> f64 return"),
    (Rule::Alignment, "%a = alloca align 12 f64, 1 return"),
    (Rule::AddressFits, "%a = addr f64, %n, 0 -> i64 return"),
    (Rule::AddressFits, "%a = addr f64, %p, %d return"),
    (Rule::AddressFits, "%a = addr f64, %p, 0, 0 return"),
    (Rule::AddressFits, "%a = addr $pair, %p, 0, %n return"),
    (Rule::AddressFits, "%a = addr $pair, %p, 0, i32 2 return"),
    (
        Rule::AddressFits,
        "%a = addr $pair, %p, <2 x i64> zero, <3 x i64> zero return",
    ),
    (Rule::Order, "%a = load release %p -> f64 return"),
    (Rule::Order, "store acquire %d, %p return"),
    (Rule::Order, "fence monotonic\n return"),
    (Rule::Order, "%a = atomicrmw add monotonic %p, %d return"),
    (Rule::Order, "%a = atomicrmw add %p, %n return"),
    (
        Rule::Order,
        "%a = cmpxchg monotonic failure release %p, %n, %n return",
    ),
    (
        Rule::Order,
        "%a = load monotonic align 8 %p -> $pair return",
    ),
    (Rule::Signature, "%a = call @g(%n) return"),
    (Rule::Signature, "%a = call @g() return"),
    (Rule::Signature, "%a = call @g(%d, %d) return"),
    (Rule::Signature, "call @v() return"),
    (Rule::Signature, "%a = call %n(%d) : fn(f64) -> f64 return"),
    (Rule::MustTail, "%a = call musttail @g(%d) return"),
    (
        Rule::MustTail,
        "call musttail @v(%p)\n fence acquire return",
    ),
    (Rule::Pad, "%a = landingpad cleanup -> {ptr, i32} return"),
    (
        Rule::Pad,
        "call_invoke { |%z: f64| yield } unwind { unreachable } return",
    ),
    (Rule::FlagFits, "%a = fadd nuw %d, %d return"),
    (Rule::FlagFits, "%a = add exact %n, %n return"),
    (Rule::FlagFits, "%a = load fast %p -> f64 return"),
    (Rule::Condition, "if %n { yield } else { yield } return"),
    (Rule::Condition, "switch %d default { yield } return"),
    (
        Rule::Condition,
        "switch i8 3 case 256 { yield } default { yield } return",
    ),
    (Rule::Condition, "for %i < %d { yield } return"),
    (Rule::Condition, "par.for %i < %d { yield } return"),
    (Rule::TaskPlace, "sync\n return"),
    (Rule::TaskPlace, "spawn { yield } return"),
    (
        Rule::RankPlace,
        "par.for %i < %n { barrier team\n yield } return",
    ),
    (
        Rule::RankPlace,
        "spmd team %n { |%r: i64, %s: i64| single { single { yield } yield } yield } return",
    ),
    (
        Rule::RankPlace,
        "critical \"l\" { share.for static %i < %n { yield } yield } return",
    ),
    (
        Rule::ParallelShape,
        "%a = par.for %i < %n reduce(custom %n) { yield %n } return",
    ),
    (
        Rule::ParallelShape,
        "%a = par.for %i < %n reduce(fadd %n) { yield %n } return",
    ),
    (
        Rule::ParallelShape,
        "%a = single %n -> f64 { yield 1.0 } return",
    ),
    (
        Rule::ParallelShape,
        "%a = single copy %n -> i64 { yield 1 } return",
    ),
    (
        Rule::ParallelShape,
        "share.for static chunked 3 { |%i: i64| yield } return",
    ),
    (
        Rule::ParallelShape,
        "scope { spawn when { yield } yield } return",
    ),
    (
        Rule::Condition,
        "scope { spawn when %n { yield } yield } return",
    ),
    (
        Rule::RegionParams,
        "%a = par.for %i < %n reduce(custom %n) { yield %n } { |%b: i64| yield %b } return",
    ),
    (
        Rule::YieldFits,
        "%a = par.for %i < %n reduce(custom %n) { yield %n } { |%b: i64, %e: i64| yield } return",
    ),
    (Rule::YieldFits, "%a = scope -> i64 { yield } return"),
    (
        Rule::ParallelShape,
        "spmd team dims 2 %n { |%r: i64, %s: i64| yield } return",
    ),
    (Rule::ValueType, "%a = foreign 1() -> void return"),
];

/// Returns the text of a broken program. Placeholders expand to two ops that are too long for the table.
fn program(text: &str) -> String {
    let text = text
        .replace("musttail_here", "call musttail @v(%p)\n return")
        .replace("call_invoke", "invoke @g(%d)");
    format!("{HEAD}func @f(%c: i1, %n: i64, %d: f64, %p: ptr, %w: <2 x f64>) {{ {text}\n }}")
}

#[test]
fn each_text_breaks_exactly_one_rule() {
    let mut wrong = Vec::new();
    for (rule, text) in BROKEN {
        let findings = verify(&read(&program(text)));
        if rules(&findings) != BTreeSet::from([rule.number()]) {
            let messages: Vec<&String> = findings.iter().map(|f| &f.message).collect();
            wrong.push(format!("{rule:?}: {text}: {messages:#?}"));
        }
        for finding in &findings {
            assert_eq!(finding.code, Code::BrokenRule);
            assert_eq!(finding.function.as_deref(), Some("f"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_failing_text() {
    let shown: BTreeSet<Rule> = BROKEN.iter().map(|(rule, _)| *rule).collect();
    let others = [Rule::Links, Rule::SymbolFits];
    for rule in Rule::ALL {
        assert!(shown.contains(rule) || others.contains(rule), "{rule:?}");
    }
    for (n, rule) in Rule::ALL.iter().enumerate() {
        assert_eq!(rule.number(), format!("V{:03}", n + 1));
    }
}

#[test]
fn symbols_match_their_types() {
    for text in [
        "global @a: i64 = zero 4",
        "global @a: i64 align 3",
        "global @a: ptr = zero 8 relocations(4: @a)",
        "declare @f() -> void type f64",
        "func @f(%x: i64) type fn(f64) -> void { return }",
    ] {
        let findings = verify(&read(text));
        assert_eq!(
            rules(&findings),
            BTreeSet::from(["V033"]),
            "{text}: {findings:?}"
        );
    }
}

#[test]
fn diagnostics_show_op_and_location() {
    let text =
        "loc 0 = \"a.c\":7:3 in \"f\"\nfunc @f(%n: i64) { %a = fadd %n, %n !loc(0)\n return }";
    let findings = verify(&read(text));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].labels[0].span.line, 7);
    assert!(
        findings[0].notes[0].contains("%a = fadd %n, %n"),
        "{findings:?}"
    );
}

#[test]
fn ops_outside_the_body_may_not_use_its_values() {
    let mut unit = read("func @f(%n: i64) { %a = add %n, 1 %b = add %a, 1 return }");
    let f = unit.function("f").expect("it is defined");
    let body = unit.functions[f].body.as_mut().expect("it has a body");
    let op = body
        .first(body.root())
        .and_then(|a| body.next(a))
        .expect("there are two adds");
    body.detach(op);
    let numbers: Vec<Diagnostic> = verify(&unit);
    assert_eq!(rules(&numbers), BTreeSet::from(["V011"]));
}

#[test]
fn erased_ops_are_not_verified() {
    let mut unit = read(
        "func @f(%n: i64) { %a = add %n, 1 if true { %b = add %a, 1 yield } else { yield } return }",
    );
    let f = unit.function("f").expect("it is defined");
    let body = unit.functions[f].body.as_mut().expect("it has a body");
    let op = body
        .walk(body.root())
        .find(|op| *body.kind(*op) == OpKind::If)
        .expect("there is an if");
    body.erase(op);
    assert_eq!(verify(&unit), []);
}

/// Programs without rule violations.
const SOUND: &[&str] = &[
    "func @f(%c: i1, %d: f64) -> f64 {
       %a = if %c -> f64 { unreachable } else { %b = fadd fast %d, 1.0 yield %b }
       return %a }",
    "declare @g(f64) -> f64
     func @f(%c: i1, %d: f64) -> f64 {
       if %c { %t = call musttail @g(%d) return %t } else { yield }
       return %d }",
    "declare @g(f64, ...) -> f64
     func @f(%p: ptr) -> f64 {
       %a = invoke @g(1.0, %p) -> f64 { |%r: f64| yield %r } unwind {
         %e = landingpad catch null -> {ptr, i32}
         resume %e }
       return %a }",
    "func @f(%n: i64, %p: ptr) {
       scope { for %i < %n { spawn { store 1.0, %p yield } yield } sync
         yield }
       %s = par.for %l < %n, %j < %n reduce(fadd 0.0) { yield 1.0 }
       spmd block %n { |%r: i64, %z: i64|
         %m = alloca shared f64, 1
         if true { barrier block
           yield } else { yield }
         share.for dynamic chunked %k < %n chunk 1 { critical \"l\" { yield } yield }
         yield }
       barrier team
       return }",
    "func @f(%n: i64, %w: <4 x ptr>, %v: <4 x f64>) -> <4 x i1> {
       %a = addr f64, %w, %n
       %b = addr {f64, [4 x i32]}, null, %n, i32 1, <4 x i64> splat 4 1
       %c = shuffle [0, 7, -1, 1] %v, %v
       %d = fcmp nnan ult %c, %v
       %e = bitcast %v -> <8 x float32>
       return %d }",
];

#[test]
fn sound_programs_pass() {
    for text in SOUND {
        let unit = read(&text.replace("float32", "f32"));
        assert_eq!(verify(&unit), [], "{text}");
    }
}

#[test]
fn deep_nests_and_long_bodies_are_checked_in_linear_time() {
    let depth = 20_000;
    let mut text = String::from("func @f(%c: i1, %x: f64) {\n");
    text.push_str(&"if %c {\n".repeat(depth));
    text.push_str(&"%a = fadd %x, %x\n".replace("%a", "%9"));
    text.push_str(&"yield } else { yield }\n".repeat(depth));
    text.push_str("return }");
    assert_eq!(verify(&read(&text)), []);
}
