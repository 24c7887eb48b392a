//! Round-trip tests: printing and parsing are inverse for every op and all contents of a unit.

use crate::op_table::prototypes;
use crate::{
    Access, AllocaInfo, AllocaStorage, Atomicity, BinaryOp, Body, CallInfo, CastOp, Code, Const,
    ConstKind, Definition, Entity, Flags, FloatKind, FloatPredicate, IntPredicate, LandingPad,
    OpKind, ReduceOp, RmwOp, Schedule, SpmdKind, TailKind, Type, TypeId, Unit, Value, parse, print,
};

fn read(text: &str) -> Unit {
    match parse(text, "test.gir") {
        Ok(unit) => unit,
        Err(e) => panic!("{e}: {:?}\n{text}", e.labels),
    }
}

/// Compares two texts; fails at the first differing line.
fn assert_same_text(a: &str, b: &str) {
    for (n, (a, b)) in std::iter::zip(a.lines(), b.lines()).enumerate() {
        assert_eq!(a, b, "line {}", n + 1);
    }
    assert_eq!(a.len(), b.len());
}

/// Asserts that canonical text is unchanged by parsing and printing.
fn assert_canonical(text: &str) {
    assert_same_text(&print(&read(text)), text);
}

/// Asserts that text is a fixpoint after the first printing. Returns the printed text.
fn assert_print_is_fixpoint(text: &str) -> String {
    let once = print(&read(text));
    assert_same_text(&print(&read(&once)), &once);
    once
}

const SUM: &str = "func @sum(%n: i64, %x: ptr) -> f64 {
  %r = for %i < %n iter(%acc = 0.0) {
    %p = addr inbounds f64, %x, %i
    %v = load %p -> f64
    %0 = fadd reassoc contract %acc, %v
    yield %0
  }
  return %r
}
";

#[test]
fn sum_loop_round_trips() {
    assert_canonical(SUM);
    let unit = read(SUM);
    let id = unit.function("sum").expect("it is defined");
    let body = unit.functions[id].body.as_ref().expect("it has a body");
    assert_eq!(body.walk(body.root()).count(), 6);
    let add = body
        .walk(body.root())
        .find(|op| *body.kind(*op) == OpKind::Binary(BinaryOp::FAdd))
        .expect("it adds");
    assert!(
        body.ops[add]
            .flags
            .has(Flags::REASSOC.with(Flags::CONTRACT))
    );
    assert_eq!(body.name(body.params()[1]), Some("x"));
}

#[test]
fn every_region_op_round_trips() {
    assert_canonical(
        r#"declare @g(ptr) -> i32
declare @__gxx_personality_v0(...) -> i32

func @f(%c: i1, %n: i64, %p: ptr) -> i32 {
  %a, %b = if %c -> i32, f64 {
    yield i32 1, 2.5
  } else {
    yield i32 -1, 0.0
  }
  %s = switch %a -> i32 case 4294967295 {
    yield i32 7
  } case 3 {
    unreachable
  } default {
    yield i32 0
  }
  %l = loop trip_max 100 iter(%k = 0, %t = 1.0) -> f64 {
    %k2 = add nuw nsw %k, 1
    %again = icmp ult %k2, %n
    repeat %again, %k2, %t, %t
  }
  %v = invoke @g(%p) -> i32 { |%got: i32|
    yield %got
  } unwind {
    %e = landingpad cleanup catch null filter [0 x ptr] zero -> {ptr, i32}
    resume %e
  }
  scope {
    spawn {
      yield
    }
    sync
    yield
  }
  %sum, %most = par.for %i < %n, %j < 10 reduce(fadd 0.0, max i32 0) {
    yield 1.0, %a
  }
  spmd block %n, 32 { |%bx: i64, %tx: i64, %bs: i64, %ts: i64|
    %local = alloca align 16 shared [32 x f64], 1
    barrier block
    share.for dynamic chunked nowait %w < %n chunk 4 {
      yield
    }
    single nowait {
      yield
    }
    critical "the lock" {
      yield
    }
    yield
  }
  return %s
}
"#,
    );
}

#[test]
fn facts_types_and_globals_round_trip() {
    assert_canonical(
        r#"layout "e-p:32:32-i64:64"
type $struct.Pair = {f64, i32}
type $"a b" = <{i8, $struct.Pair}>
type $struct.Pair#1 = {f32}
tbaa 0 = "root" ()
tbaa 1 = "double" (0: 0) host 4
tbaa 2 = "pair" (0: 1, 8: 1)
scope 0 = "a" in "f"
scope 1 = "b" in "f" host 9
loc 0 = "x.c":3:7 in "f" at 1 host 2
loc 1 = "x.c":9:1 in "main"
attrs 0 = fn(nounwind, memory = 3, "target-cpu" = "x86-64") result(noundef) param() param(sret = type {f64, i32}, range = host 3)
global @table: [3 x f64] internal const = [1.0, -0.5, 1e-300]
global @bytes: [4 x i8] align 8 = [104, 105, -1, 0]
global @one: i32 = [7]
global @vtable: [2 x ptr] linkonce_odr = zero 8 relocations(0: @f, 4: @table+8)
global @odd: <{i8, $struct.Pair}> = hex "0102030405"
global @outside: i32 extern thread_local
global @shadow: [3 x f64] from @table
declare @exp(f64) -> f64 #0
declare @"a\"b"(%fmt: ptr, ...) -> i32 interposable hosted cc 8
declare @taken(ptr) -> void

func @f(%p: ptr, %q: ptr) -> void internal new #0 from @taken source "f(int)" at "x.c":2:1 {
  %0 = load volatile align 1 %p -> f64 !tbaa(2, 1, 8, const) !copied(0: 8 (2, 1, 0), 8: 16 (1, 1, 0)) !scopes(0) !noalias(1) !host("range" 3, "x" 1) !loc(0)
  %1 = addr $struct.Pair, %p, 0, i32 1
  store %0, @table+16 !loc(1)
  %2 = call @exp(%0)
  %3 = call tail cc 9 %q(%2, i32 1) bundle "deopt"(%1) bundle "x"() #0 : fn(f64, i32) -> f64
  call @"a\"b"(%p, 5) : fn(ptr, ...) -> void
  return
}
"#,
    );
}

#[test]
fn constants_round_trip() {
    let lines = [
        "i64 9223372036854775807",
        "i128 -170141183460469231731687303715884105728",
        "i8 -1",
        "i1 undef",
        "f32 0.1",
        "f64 0x7ff8000000000001",
        "f64 0xfff0000000000000",
        "f80 0x3fff8000000000000000",
        "f16 0x3c00",
        "<4 x f64> splat 4 1.0",
        "<2 x f64> {1.0, 2.0}",
        "{f64, {i32, i1}} {1.0, {i32 2, true}}",
        "[2 x ptr] {@g, null}",
        "ptr(3) null",
        "ptr(1) @g+4",
        "<vscale x 2 x f64> zero",
        "{f64, f64} poison",
        "ptr no_object 8",
        "ptr foreign 12",
        "f64 zero",
    ];
    for line in lines {
        let literal = line
            .replace("{i32 2, true}", "{2, true}")
            .replace("i64 9223372036854775807", "9223372036854775807");
        let text =
            format!("global @g: i32 = [1]\n\nfunc @f() -> void {{\n  foreign 0({literal})\n}}\n");
        assert_canonical(&text);
        assert_print_is_fixpoint(&format!(
            "global @g: i32 = [1]\nfunc @f() {{ foreign 0({line}) }}"
        ));
    }
}

#[test]
fn names_are_uniqued() {
    let text = assert_print_is_fixpoint(
        "func @f(%\"0\": i64, %b: i64) -> i64 { %a.1 = add %\"0\", %b %7 = add %a.1, %b return %7 }",
    );
    assert!(text.contains("%\"0\": i64"), "{text}");
    let mut unit = read(&text);
    let id = unit.function("f").expect("it is defined");
    let mut body = unit.functions[id].body.take().expect("it has a body");
    let root = body.root();
    for op in body.ops_in(root).collect::<Vec<_>>() {
        body.ops[op].name = Some("a".into());
    }
    unit.functions[id].body = Some(body);
    let text = print(&unit);
    assert!(
        text.contains("%a = add") && text.contains("%a.1 = add %a,"),
        "{text}"
    );
    assert_print_is_fixpoint(&text);
}

#[test]
fn invalid_ir_round_trips() {
    for text in [
        "func @f(%c: i1) { if %c { yield } }",
        "func @f(%n: i64) { for %n, 1.0 { |%i: f64| yield } -> f64 }",
        "func @f() -> f64 { %b = fadd %a, %a -> f64 %a = fadd 1.0, 2.0 return %b }",
        "func @f(%c: i1) { if %c { %x = fadd 1.0, 1.0 yield } else { yield } return %x }",
        "func @f() { return\n return }",
        "func @f(%x: i64) { switch %x case 1 case 2 }",
        "func @f() { loop }",
        "func @f(%x: i64) { %a = add %x -> () }",
    ] {
        match parse(text, "t") {
            Ok(unit) => {
                let once = print(&unit);
                assert_eq!(print(&read(&once)), once, "{text}");
            }
            Err(e) => assert!(
                text.contains("-> f64 }") || text.contains("-> ()"),
                "{text}: {e}"
            ),
        }
    }
}

#[test]
fn errors_name_line_and_column() {
    for (text, line, column, word) in [
        ("func @f() {\n  frobnicate\n}", 2, 3, "unknown op"),
        ("func @f() {\n  return %x\n}", 2, 10, "undefined value"),
        (
            "func @f() {\n  %a = fadd 1.0, 2.0 $\n}",
            2,
            23,
            "expected a name",
        ),
        ("func @f() {\n", 2, 1, "closing bracket"),
        ("global @g: i8 = [300]", 1, 18, "does not fit"),
        (
            "func @f() { return 1 }\nfunc @f() { return }",
            2,
            6,
            "twice",
        ),
        ("func @f(%a: i32) { %a = freeze %a }", 1, 20, "twice"),
        ("func @f(%p: ptr) { %a = load %p return }", 1, 20, "results"),
        (
            "func @f(%p: ptr) { call %p(1) return }",
            1,
            25,
            "function type",
        ),
        ("type $t = {$t}", 1, 12, "no earlier line"),
        ("func @f() { x", 1, 14, "closing bracket"),
        ("loc 0 = \"a\":1:1 in \"f\" at 4", 1, 27, "no line"),
        ("func @f() { return zero }", 1, 20, "needs a type prefix"),
    ] {
        let e = parse(text, "bad.gir").expect_err(text);
        assert_eq!(e.code, Code::BadText);
        let span = &e.labels[0].span;
        assert_eq!((span.line, span.column), (line, column), "{text}: {e}");
        assert!(e.message.contains(word), "{text}: {e}");
        assert_eq!(span.file, "bad.gir");
    }
}

#[test]
fn no_prefix_of_a_text_crashes_the_parser() {
    for end in (0..SUM.len()).filter(|i| SUM.is_char_boundary(*i)) {
        let _ = parse(&SUM[..end], "t").map(|unit| print(&unit));
        let _ = parse(&SUM[end..], "t").map(|unit| print(&unit));
    }
}

#[test]
fn deep_nests_need_no_stack() {
    let depth = 20_000;
    let mut text = String::from("func @f(%c: i1) {\n");
    text.push_str(&"if %c {\n".repeat(depth));
    text.push_str(&"yield } else { yield }\n".repeat(depth));
    text.push_str("return }");
    let unit = read(&text);
    let once = print(&unit);
    assert!(once.len() < 600 * depth, "the text is linear in the depth");
    assert_same_text(&print(&read(&once)), &once);
    let deep = format!("global @g: {}i8{}", "[1 x ".repeat(5000), "]".repeat(5000));
    assert!(parse(&deep, "t").is_err());
}

// ---- every op ------------------------------------------------------------------------------

/// Returns op kinds with varied data, for every op.
// table
fn all_kinds(double: TypeId, signature: TypeId, null: crate::ConstId) -> Vec<OpKind> {
    let mut kinds: Vec<OpKind> = prototypes().into_iter().map(|(_, kind)| kind).collect();
    kinds.retain(|k| {
        !matches!(
            k,
            OpKind::Load(_)
                | OpKind::Store(_)
                | OpKind::Alloca(_)
                | OpKind::AtomicRmw(..)
                | OpKind::CmpXchg { .. }
                | OpKind::Addr { .. }
                | OpKind::Call(_)
                | OpKind::Invoke(_)
                | OpKind::ParFor { .. }
                | OpKind::Spmd { .. }
        )
    });
    kinds.extend(IntPredicate::ALL.iter().map(|p| OpKind::ICmp(*p)));
    kinds.extend(FloatPredicate::ALL.iter().map(|p| OpKind::FCmp(*p)));
    kinds.push(OpKind::Shuffle([3, 0, -1].into()));
    kinds.push(OpKind::ExtractValue([1, 0].into()));
    kinds.push(OpKind::InsertValue([2].into()));
    kinds.push(OpKind::Addr { source: double });
    for (align_bytes, order) in std::iter::zip([1, 2, 4, 8, 16, 32, 64], Atomicity::ALL) {
        let access = Access {
            align_bytes,
            volatile: align_bytes > 8,
            order: *order,
            sync_scope: align_bytes % 3,
        };
        kinds.push(OpKind::Load(access));
        kinds.push(OpKind::Store(access));
        kinds.push(OpKind::CmpXchg {
            access,
            failure: *order,
            weak: align_bytes > 4,
        });
        kinds.extend(RmwOp::ALL.iter().map(|op| OpKind::AtomicRmw(*op, access)));
        kinds.push(OpKind::Fence {
            order: *order,
            sync_scope: access.sync_scope,
        });
    }
    for place in [
        AllocaStorage::Frame,
        AllocaStorage::Private,
        AllocaStorage::Shared,
    ] {
        kinds.push(OpKind::Alloca(AllocaInfo {
            ty: double,
            align_bytes: 8 << place as u32,
            storage: place,
            inalloca: place == AllocaStorage::Frame,
        }));
    }
    for tail in TailKind::ALL {
        let info = CallInfo {
            signature,
            convention: *tail as u32 * 3,
            tail: *tail,
            attrs: None,
            bundles: vec![("deopt".into(), 1), ("a \"b\"".into(), 0)],
        };
        kinds.push(OpKind::Call(Box::new(info.clone())));
        kinds.push(OpKind::Invoke(Box::new(info)));
    }
    kinds.push(OpKind::Switch([0, 9, u128::MAX].into()));
    kinds.push(OpKind::Loop { trip_max: Some(9) });
    kinds.push(OpKind::For { trip_max: Some(0) });
    kinds.push(OpKind::LandingPad(Box::new(LandingPad {
        cleanup: true,
        clauses: vec![(false, null), (true, null)],
    })));
    kinds.push(OpKind::ParFor {
        dims: 1,
        reductions: [ReduceOp::FAdd].into(),
        grain: Some(4),
    });
    for kind in SpmdKind::ALL {
        kinds.push(OpKind::Spmd {
            kind: *kind,
            dims: 2,
        });
    }
    for schedule in Schedule::ALL {
        kinds.push(OpKind::ShareFor {
            schedule: *schedule,
            chunked: *schedule == Schedule::Guided,
            nowait: *schedule == Schedule::Dynamic,
        });
    }
    for (first, second) in [(true, false), (false, true), (true, true)] {
        kinds.push(OpKind::Single {
            nowait: first,
            copy: second,
        });
        kinds.push(OpKind::Spawn {
            has_condition: first,
            has_final: second,
        });
    }
    kinds.push(OpKind::Critical("a \"lock\"\n".into()));
    kinds.push(OpKind::Foreign(77));
    kinds
}

/// Describes an op's kind without ids of the unit.
fn described(unit: &Unit, kind: &OpKind) -> String {
    let ty = |id: TypeId| unit.types.get(id).clone();
    match kind {
        OpKind::Alloca(i) => format!(
            "{:?} {} {:?} {}",
            ty(i.ty),
            i.align_bytes,
            i.storage,
            i.inalloca
        ),
        OpKind::Addr { source } => format!("addr {:?}", ty(*source)),
        OpKind::Call(i) | OpKind::Invoke(i) => {
            let Type::Func { result, params, .. } = ty(i.signature) else {
                return "no function".into();
            };
            let params: Vec<Type> = params.into_iter().map(ty).collect();
            let rest = (i.convention, i.tail, &i.bundles);
            format!("{:?} {params:?} {rest:?} {}", ty(result), kind.mnemonic())
        }
        OpKind::LandingPad(pad) => {
            let kinds: Vec<(bool, &Const)> = pad
                .clauses
                .iter()
                .map(|(f, id)| (*f, unit.constant(*id)))
                .collect();
            let kinds: Vec<_> = kinds.iter().map(|(f, c)| (f, ty(c.ty), &c.kind)).collect();
            format!("{} {kinds:?}", pad.cleanup)
        }
        kind => format!("{kind:?}"),
    }
}

/// Lists a body's ops in order: kind, flags, operand and result types, region parameters.
fn listing(unit: &Unit, body: &Body) -> Vec<String> {
    let types = |values: &[Value]| -> Vec<Type> {
        values
            .iter()
            .map(|v| unit.types.get(body.ty(*v)).clone())
            .collect()
    };
    body.walk(body.root())
        .map(|op| {
            let operands: Vec<Value> = body.operands(op).collect();
            let origins: Vec<Option<(usize, u32)>> = operands
                .iter()
                .map(|v| match body.values[*v].def {
                    Definition::Param(region, i) => Some((region.index(), i)),
                    _ => None,
                })
                .collect();
            let params: Vec<Vec<Type>> = body
                .op_regions(op)
                .iter()
                .map(|r| types(body.region_params(*r)))
                .collect();
            format!(
                "{} {:?} {:?} {origins:?} {:?} {params:?}",
                described(unit, body.kind(op)),
                body.ops[op].flags,
                types(&operands),
                types(body.results(op)),
            )
        })
        .collect()
}

#[test]
fn every_op_round_trips() {
    let mut unit = Unit::default();
    let double = unit.types.f64();
    let (int, ptr, void) = (unit.types.int(64), unit.types.ptr(), unit.types.void());
    let signature = unit.types.func(double, vec![ptr]);
    let null = unit.consts.intern(ptr, ConstKind::Zero);
    let params = [double, int, ptr, int];
    let mut body = Body::new(&params);
    let (values, root) = (body.params().to_vec(), body.root());
    for (n, kind) in all_kinds(double, signature, null).into_iter().enumerate() {
        let row = kind.row();
        let count = |c: crate::Count, extra: usize| match c {
            crate::Count::Exactly(n) => n as usize,
            crate::Count::AtLeast(n) => n as usize + extra,
        };
        let mut operands = count(row.operands, 1);
        if kind.call_info().is_some() {
            operands = 3;
        }
        let regions = match &kind {
            OpKind::Switch(cases) => cases.len() + 1,
            _ => count(row.regions, 0),
        };
        let results = vec![double; count(row.results, 1)];
        let operands: Vec<Value> = (0..operands).map(|i| values[(i + n) % 4]).collect();
        let op = body.new_op(kind, &operands, &results, regions);
        let (flag, _) = Flags::NAMES[n % Flags::NAMES.len()];
        body.ops[op].flags = if n % 20 == 19 {
            Flags::FAST.with(Flags::NUW)
        } else {
            flag
        };
        for (i, region) in body.op_regions(op).to_vec().into_iter().enumerate() {
            body.add_param(region, int);
            if i % 2 == 0 {
                body.add_param(region, double);
            }
        }
        body.append(root, op);
    }
    let expected = listing(&unit, &body);
    let ty = unit.types.func(void, params.to_vec());
    let f = unit.declare("f", ty, crate::AttrSet::default());
    unit.functions[f].defined = true;
    unit.functions[f].body = Some(Box::new(body));
    let text = print(&unit);
    let again = read(&text);
    assert_same_text(&print(&again), &text);
    let f = again.function("f").expect("it is there");
    let own = listing(
        &again,
        again.functions[f].body.as_ref().expect("it has a body"),
    );
    assert_eq!(own.len(), expected.len());
    for (a, b) in std::iter::zip(own, expected) {
        assert_eq!(a, b);
    }
}

#[test]
fn every_type_round_trips() {
    let kinds = [
        FloatKind::F16,
        FloatKind::BF16,
        FloatKind::F32,
        FloatKind::F64,
        FloatKind::X86F80,
        FloatKind::F128,
        FloatKind::PpcF128,
    ];
    let mut texts: Vec<String> = kinds
        .iter()
        .map(|k| super::print_const::float_word(*k).to_string())
        .collect();
    texts.extend(
        [
            "i1",
            "i37",
            "ptr",
            "ptr(271)",
            "<4 x ptr>",
            "<vscale x 2 x f32>",
            "[0 x i8]",
            "[2 x [3 x f64]]",
            "{}",
            "<{i8, f64}>",
            "{f64, {i1}}",
            "opaque \"target(\\\"a\\\")\"",
            "fn() -> void",
            "fn(...) -> i32",
            "fn(ptr, fn() -> void, ...) -> {f64}",
        ]
        .map(String::from),
    );
    let list: Vec<String> = texts
        .iter()
        .map(|t| {
            format!(
                "global @\"{}\": {t}\n",
                t.replace('"', "'").replace('\\', "/")
            )
        })
        .collect();
    let unit = read(&list.concat());
    for ((_, global), text) in unit.globals.iter().zip(&texts) {
        assert_eq!(
            &super::print_const::TypePrinter::new(&unit).text(global.ty),
            text
        );
    }
    assert_eq!(CastOp::ALL.len(), 14);
}
