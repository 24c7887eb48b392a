//! Export of ops that were not imported: new functions, loops, globals, alias scopes, derivatives' debug
//! information.
use crate::clang::bitcode;
use gradus_ir::{
    AliasScope, AttrSet, BarrierScope, BinaryOp, Body, Builder, Flags, FloatKind, FuncId, Function,
    Global, Initializer, IntPredicate, Linkage, Meta, Op, OpKind, Relocation, Symbol, Unit, verify,
};
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_llvm::{Host, OptLevel, Pipeline};

const PROGRAM: &str = "double sq(double x) { double y = x * x; return y + 1; }
    double use(double x, int n) { if (n > 3) x = sq(x); return x; }";

fn function(unit: &mut Unit, name: &str, ty: gradus_ir::TypeId, body: Body) -> FuncId {
    let attrs = unit.intern_attrs(AttrSet::default());
    unit.add_function(Function {
        name: name.into(),
        ty,
        attrs,
        convention: 0,
        linkage: Linkage::External,
        defined: false,
        body: Some(Box::new(body)),
        derived_from: None,
        param_names: Vec::new(),
        span: None,
        source_name: None,
    })
}

/// Builds `void saxpy(i64 n, double a, ptr x, ptr y) { for i: y[i] += a * x[i] }`, with the sum of all `y`
/// as result.
fn saxpy(unit: &mut Unit) -> FuncId {
    let (word, real, ptr) = (
        unit.types.int(64),
        unit.types.float(FloatKind::F64),
        unit.types.ptr(),
    );
    let params = vec![word, real, ptr, ptr];
    let ty = unit.types.func(real, params.clone());
    let mut body = Body::new(&params);
    let [n, a, x, y] = body.params().try_into().expect("four parameters");
    let scope = unit.scopes.push(AliasScope {
        name: "x".into(),
        domain: "saxpy".into(),
        host: None,
    });
    let reads = unit.intern_meta(Meta {
        alias_scopes: vec![scope],
        ..Meta::default()
    });
    let writes = unit.intern_meta(Meta {
        noalias: vec![scope],
        ..Meta::default()
    });
    let mut b = Builder::new(unit, &mut body);
    let zero = b.float(real, 0.0);
    let (op, region) = b.for_(n, &[zero]);
    let place = b.set_insertion_end(region);
    let (i, sum) = (
        b.body.region_params(region)[0],
        b.body.region_params(region)[1],
    );
    let from = b.addr(real, x, i);
    let to = b.addr(real, y, i);
    let (old_x, old_y) = (b.load(real, from), b.load(real, to));
    let product = b.fmul(a, old_x);
    let new = b.fadd(old_y, product);
    let store = b.store(new, to);
    b.set_meta(store, writes);
    let load = b.body.def_op(old_x).expect("an op");
    b.set_meta(load, reads);
    b.fast_math = Flags::FAST;
    let sum = b.fadd(sum, new);
    b.yield_(&[sum]);
    b.restore_insertion_point(place);
    let result = b.body.result(op);
    b.return_(Some(result));
    function(unit, "saxpy", ty, body)
}

#[test]
fn for_handles_any_trip_count() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let id = saxpy(&mut unit);
    assert_eq!(verify(&unit), []);
    host.export(&unit, &[id]).expect("exports");
    host.verify().expect("LLVM's rules");
    let text = host.function_text("saxpy").expect("is there");
    assert!(
        text.contains("!alias.scope") && text.contains("!noalias"),
        "{text}"
    );
    assert!(text.contains("add nuw nsw i64"), "{text}");
    host.run(Pipeline::Late(OptLevel::O3))
        .expect("late pipeline");
    let text = host.function_text("saxpy").expect("is there");
    assert!(text.contains("x double>"), "vectorised: {text}");
    let jit = Jit::new(host, &["saxpy"]).expect("compiles");
    for n in [0usize, 1, 7, 64] {
        let mut x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let mut y = vec![1.0; n];
        let args = &mut [
            Arg::Int(n as i64),
            Arg::F64(0.5),
            Arg::F64s(&mut x),
            Arg::F64s(&mut y),
        ];
        let sum = jit.call("saxpy", args).expect("runs").f64();
        let expected: f64 = (0..n).map(|i| 1.0 + 0.5 * i as f64).sum();
        assert_eq!(sum, expected);
        assert!(
            y.iter()
                .enumerate()
                .all(|(i, v)| *v == 1.0 + 0.5 * i as f64)
        );
    }
}

/// `for (i = a; i < b; i++) sum += i`, plus the trip count after the loop.
#[test]
fn trip_count_condition_guards_for() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let word = unit.types.int(64);
    let ty = unit.types.func(word, vec![word, word]);
    let mut body = Body::new(&[word, word]);
    let [from, to] = body.params().try_into().expect("two parameters");
    let b = &mut Builder::new(&mut unit, &mut body);
    let zero = b.i64(0);
    let some = b.icmp(IntPredicate::Slt, from, to);
    let count = b.binary(BinaryOp::Sub, to, from);
    let runs = b.select(some, count, zero);
    let (op, region) = b.for_(runs, &[zero]);
    let place = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let index = b.add(from, params[0]);
    let sum = b.add(params[1], index);
    b.yield_(&[sum]);
    b.restore_insertion_point(place);
    let sum = b.body.result(op);
    let all = b.add(sum, runs);
    b.return_(Some(all));
    let id = function(&mut unit, "sum", ty, body);
    host.export(&unit, &[id]).expect("exports");
    host.verify().expect("LLVM's rules");
    let text = host.function_text("sum").expect("is there");
    assert!(!text.contains("icmp ne"), "{text}");
    let jit = Jit::new(host, &["sum"]).expect("compiles");
    for (from, to) in [(3, 10), (-4, 2), (5, 5), (7, -7)] {
        let args = &mut [Arg::Int(from), Arg::Int(to)];
        let expected = (from..to).sum::<i64>() + (to - from).max(0);
        assert_eq!(jit.call("sum", args).expect("runs").i64(), expected);
    }
}

#[test]
fn scalar_for_is_not_vectorised() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let id = saxpy(&mut unit);
    if let Some(body) = unit.functions[id].body.as_mut() {
        let loops: Vec<Op> = body.walk(body.root()).collect();
        for op in loops {
            if matches!(body.kind(op), OpKind::For { .. }) {
                body.ops[op].flags = body.ops[op].flags.with(Flags::NO_VECTORIZE);
            }
        }
    }
    assert_eq!(verify(&unit), []);
    host.export(&unit, &[id]).expect("exports");
    host.run(Pipeline::Late(OptLevel::O3))
        .expect("late pipeline");
    let text = host.function_text("saxpy").expect("is there");
    assert!(!text.contains("x double>"), "vectorised: {text}");
}

/// Unrolled before vectorization, the loop would have no vectors; after vectorization no loop is left.
#[test]
fn short_for_vectorises_then_unrolls() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let id = saxpy(&mut unit);
    let mut body = unit.functions[id].body.take().expect("is there");
    let trips = Builder::new(&mut unit, &mut body).i64(16);
    let loops: Vec<Op> = body.walk(body.root()).collect();
    for op in loops {
        if matches!(body.kind(op), OpKind::For { .. }) {
            body.ops[op].flags = body.ops[op].flags.with(Flags::INDEPENDENT);
            body.set_operand(op, 0, trips);
        }
    }
    unit.functions[id].body = Some(body);
    assert_eq!(verify(&unit), []);
    host.export(&unit, &[id]).expect("exports");
    host.run(Pipeline::Late(OptLevel::O3))
        .expect("late pipeline");
    let text = host.function_text("saxpy").expect("is there");
    assert!(text.contains("x double>"), "vectorised: {text}");
    assert!(!text.contains(" phi "), "unrolled: {text}");
}

#[test]
fn new_globals_hold_bytes_and_addresses() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let sq = unit.function("sq").expect("imported");
    let (word, real, ptr) = (unit.types.int(64), unit.types.f64(), unit.types.ptr());
    let ty = unit.types.tuple(vec![word, ptr]);
    let mut bytes = vec![0; 16];
    bytes[0] = 42;
    let relocations = vec![Relocation {
        offset_bytes: 8,
        target: Symbol::Func(sq),
        addend: 0,
    }];
    let table = unit.add_global(Global {
        name: "table".into(),
        ty,
        constant: true,
        thread_local: false,
        defined: true,
        linkage: Linkage::Internal,
        align_bytes: 8,
        init: Some(Initializer { bytes, relocations }),
        unparsed_symbols: Vec::new(),
        room_bytes: 0,
        derived_from: None,
    });
    let at = |unit: &mut Unit, offset| {
        unit.consts.intern(
            ptr,
            gradus_ir::ConstKind::Global {
                global: table,
                offset,
            },
        )
    };
    let (first, second) = (at(&mut unit, 0), at(&mut unit, 8));
    let signature = unit.types.func(real, vec![real]);
    let mut body = Body::new(&[real]);
    let x = body.params()[0];
    let mut b = Builder::new(&mut unit, &mut body);
    let (first, second) = (b.constant(first), b.constant(second));
    let callee = b.load(ptr, second);
    let number = b.load(word, first);
    let number = b.cast(gradus_ir::CastOp::UIToFP, number, real);
    let call = b.call_with(gradus_ir::CallInfo::plain(signature), callee, &[x]);
    let called = b.body.result(call);
    let sum = b.fadd(called, number);
    b.return_(Some(sum));
    let id = function(&mut unit, "look", signature, body);
    assert_eq!(verify(&unit), []);
    host.export(&unit, &[id]).expect("exports");
    let jit = Jit::new(host, &["look"]).expect("compiles");
    assert_eq!(
        jit.call("look", &mut [Arg::F64(3.0)]).expect("runs").f64(),
        52.0
    );
}

#[test]
fn recursions_are_line_aligned() {
    const TWO: &str = "long down(long n) { return n < 2 ? n : down(n - 1) + down(n - 3); }
        long half(long n) { return n / 2; }";
    let mut host = Host::parse(&bitcode(TWO, &["-O1"]), "p.bc").expect("reads");
    let unit = host.import_all().unit;
    host.export_all(&unit).expect("exports");
    let begins = |name| {
        host.function_text(name)
            .expect("is there")
            .contains("align 64")
    };
    assert!(begins("down") && !begins("half"));
}

/// LLVM's block placement starts from the order of blocks: the continuation of a branch must not precede
/// its arms.
#[test]
fn blocks_follow_code_order() {
    const NESTED: &str =
        "int a(void), b(void), c(void), d(void), e(void), f(void), g(void), h(void), i(void),
            j(void), k(void), l(void), m(void), n(void), o(void);
        void walk(int x) {
          if (x < 4) { a(); if (x > 0) { b(); if (x > 2) c(); else d(); e(); } }
          else { f(); for (int r = 0; r < x; r++) { g(); if (!(r & x)) h(); else i(); } j(); }
          k(); do { l(); if (m()) { n(); break; } } while (l()); o(); }";
    let mut host = Host::parse(&bitcode(NESTED, &["-O1"]), "p.bc").expect("reads");
    let unit = host.import_all().unit;
    host.export_all(&unit).expect("exports");
    let text = host.function_text("walk").expect("is there");
    let place = |name| text.find(&format!("@{name}()")).expect("is called");
    let places: Vec<usize> = ('a'..='o').map(place).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn derivative_has_lines_of_primal() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O1", "-g"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let origin = unit.function("use").expect("imported");
    let copy = Function {
        name: "use_copy".into(),
        linkage: Linkage::LinkOnceOdr,
        derived_from: Some(origin),
        ..unit.functions[origin].clone()
    };
    unit.add_function(copy);
    assert_eq!(verify(&unit), []);
    host.export_all(&unit).expect("exports");
    host.verify().expect("LLVM's rules");
    let text = host.to_text();
    assert!(
        text.contains("linkonce_odr hidden") && text.contains("inlinedAt:"),
        "{text}"
    );
    assert!(text.contains("linkageName: \"use_copy\""), "{text}");
    let records = |name: &str| {
        host.function_text(name)
            .expect("is there")
            .matches("#dbg_value")
            .count()
    };
    assert!(records("use") > 0, "{text}");
    let copy = host.function_text("use_copy").expect("is there");
    assert!(
        copy.contains("#dbg_value(double %x,") && copy.contains("#dbg_value(i32 %n,"),
        "{copy}"
    );
    let jit = Jit::new(host, &["use_copy"]).expect("compiles");
    let call = |n| {
        jit.call("use_copy", &mut [Arg::F64(3.0), Arg::Int(n)])
            .expect("runs")
            .f64()
    };
    assert_eq!((call(1), call(4)), (3.0, 10.0));
}

/// Locals in memory, loops, a weighted switch whose cases share targets: constructs with debug information
/// and metadata.
const DESCRIBED: &str = "int read(int *p); void fill(double *p, int n);
    double work(int n, int k) {
      double v[8]; int flag = 0;
      fill(v, n);
      double s = 0;
      for (int i = 0; i < n; i++) { double t = v[i & 7]; if (read(&flag)) break; s += t * i; }
      switch (__builtin_expect(k, 3)) { case 1: case 2: s += 1; break; case 3: s *= 2; break; case 7: break; default: s = -s; }
      return s;
    }";

#[test]
fn copies_with_debug_info_verify() {
    for flags in [&["-O2", "-g"][..], &["-O1", "-g"], &["-O0", "-g"], &["-O2"]] {
        let mut host = Host::parse(&bitcode(DESCRIBED, flags), "p.bc").expect("reads");
        let operations = host.census(|name| name == "work");
        let mut unit = host.import_all().unit;
        let origin = unit.function("work").expect("imported");
        unit.add_function(Function {
            name: "copy".into(),
            derived_from: Some(origin),
            ..unit.functions[origin].clone()
        });
        let records = |host: &Host| {
            host.function_text("work")
                .expect("is there")
                .matches("#dbg_")
                .count()
        };
        let before = records(&host);
        host.export_all(&unit).expect("exports");
        host.verify().unwrap_or_else(|e| panic!("{flags:?}: {e}"));
        assert!(
            10 * records(&host) >= 7 * before,
            "{flags:?}: most debug records stay"
        );
        assert_eq!(host.census(|name| name == "work"), operations, "{flags:?}");
        host.run(Pipeline::Late(OptLevel::O3))
            .expect("late pipeline");
    }
}

#[test]
fn an_outdated_unit_and_parallel_ops_are_refused() {
    let mut host = Host::parse(&bitcode(PROGRAM, &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    host.export_all(&unit).expect("exports");
    assert!(
        host.export_all(&unit).is_err(),
        "the first export made the unit outdated"
    );
    unit = host.import_all().unit;
    host.run(Pipeline::EarlySerial).expect("early pipeline");
    assert!(host.export_all(&unit).is_err(), "a pipeline has run");
    unit = host.import(&["use"]).expect("imports").unit;
    let ty = unit.types.void();
    let ty = unit.types.func(ty, vec![]);
    let mut body = Body::new(&[]);
    let mut b = Builder::new(&mut unit, &mut body);
    b.op(OpKind::Barrier(BarrierScope::Block), &[], &[], 0);
    b.return_(None);
    let id = function(&mut unit, "parallel", ty, body);
    assert!(
        host.export(&unit, &[id]).is_err(),
        "parallel ops are lowered before"
    );
    assert!(host.import(&["nobody"]).is_err(), "no such function");
}
