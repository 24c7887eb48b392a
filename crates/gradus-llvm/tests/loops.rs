//! Exported loops have the blocks and variables of the program's own loops, so that LLVM optimises both
//! equally well.
use crate::clang::bitcode;
use gradus_ir::{
    Attr, AttrSet, AttrValue, BinaryOp, Body, Builder, Flags, FloatKind, FuncId, Function,
    IntPredicate, Linkage, TypeId, Unit, verify,
};
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_llvm::{Host, OptLevel, Pipeline};

/// Returns a module with a function of the given parameters and the code emitted by `fill`.
fn exported(
    params: impl Fn(&mut Unit) -> (Vec<TypeId>, TypeId),
    fill: impl Fn(&mut Builder<'_>),
) -> Host {
    let mut host = Host::parse(&bitcode("int nothing;", &["-O2"]), "p.bc").expect("reads");
    let mut unit = host.import_all().unit;
    let (params, result) = params(&mut unit);
    let mut body = Body::new(&params);
    fill(&mut Builder::new(&mut unit, &mut body));
    let ty = unit.types.func(result, params);
    let id = define(&mut unit, ty, body);
    assert_eq!(verify(&unit), []);
    host.export(&unit, &[id]).expect("exports");
    host.verify().expect("LLVM's rules");
    host
}

fn define(unit: &mut Unit, ty: TypeId, body: Body) -> FuncId {
    // clang sets the attribute, too; without `tune-cpu` LLVM has no cost model for unrolling.
    let attrs = unit.intern_attrs(AttrSet {
        function: vec![Attr {
            name: "tune-cpu".into(),
            value: AttrValue::Text("generic".into()),
        }],
        ..AttrSet::default()
    });
    unit.add_function(Function {
        name: "f".into(),
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

fn text(host: &Host) -> String {
    host.function_text("f").expect("is there")
}

/// `for (i = from; i < to; i++) y[i] = y[i - 1] + x[i]`, as a `for` over the trip count.
fn running_sum(b: &mut Builder<'_>) {
    let [from, to, x, y] = b.body.params().try_into().expect("four parameters");
    let real = b.unit.types.float(FloatKind::F64);
    let zero = b.i64(0);
    let some = b.icmp(IntPredicate::Slt, from, to);
    let count = b.binary(BinaryOp::Sub, to, from);
    let runs = b.select(some, count, zero);
    let (_, region) = b.for_(runs, &[]);
    let place = b.set_insertion_end(region);
    let index = b.body.region_params(region)[0];
    let i = b.add(from, index);
    b.set_flags(i, Flags::NSW);
    let one = b.i64(1);
    let before = b.sub(i, one);
    b.set_flags(before, Flags::NSW);
    let [from_x, last, own] = [(x, i), (y, before), (y, i)].map(|(at, i)| b.addr(real, at, i));
    let (last, new) = (b.load(real, last), b.load(real, from_x));
    let sum = b.fadd(last, new);
    b.store(sum, own);
    b.yield_(&[]);
    b.restore_insertion_point(place);
    b.return_(None);
}

#[test]
fn loop_carried_store_is_not_reloaded() {
    let mut host = exported(
        |unit| {
            let (word, ptr) = (unit.types.int(64), unit.types.ptr());
            (vec![word, word, ptr, ptr], unit.types.void())
        },
        running_sum,
    );
    host.run(Pipeline::Late(OptLevel::O3))
        .expect("late pipeline");
    let code = text(&host);
    let (loads, stores) = (
        code.matches("load double").count(),
        code.matches("store double").count(),
    );
    // One load per addition, and the loads before the loop.
    assert!(stores > 0 && loads <= stores + 2, "{code}");
    let jit = Jit::new(host, &["f"]).expect("compiles");
    for (from, to) in [(1, 6), (2, 3), (4, 4), (5, 1)] {
        let mut x: Vec<f64> = (0..6).map(f64::from).collect();
        let mut y = vec![1.0; 6];
        let mut expected = y.clone();
        for i in from..to {
            expected[i] = expected[i - 1] + x[i];
        }
        let (x, y_there) = (&mut x, &mut y);
        let args = &mut [
            Arg::Int(from as i64),
            Arg::Int(to as i64),
            Arg::F64s(x),
            Arg::F64s(y_there),
        ];
        jit.call("f", args).expect("runs");
        assert_eq!(y, expected, "{from} to {to}");
    }
}

/// `while (*p < bound) p++; return *p;`, with an `if` that selects the carried value and a loop with an
/// equal repeat condition.
fn search(b: &mut Builder<'_>) {
    let [p, bound] = b.body.params().try_into().expect("two parameters");
    let word = b.unit.types.int(64);
    let ptr = b.body.ty(p);
    let (found, region) = b.loop_(&[p], &[ptr]);
    let place = b.set_insertion_end(region);
    let at = b.body.region_params(region)[0];
    let value = b.load(word, at);
    let less = b.icmp(IntPredicate::Slt, value, bound);
    let (chosen, yes, no) = b.if_(less, &[ptr]);
    let inside = b.set_insertion_end(yes);
    let one = b.i64(1);
    let next = b.addr(word, at, one);
    b.yield_(&[next]);
    b.set_insertion_end(no);
    b.yield_(&[at]);
    b.restore_insertion_point(inside);
    let next = b.body.result(chosen);
    b.repeat(less, &[next], &[next]);
    b.restore_insertion_point(place);
    let found = b.body.result(found);
    let value = b.load(word, found);
    b.return_(Some(value));
}

#[test]
fn shared_condition_is_tested_once() {
    let host = exported(
        |unit| {
            let (word, ptr) = (unit.types.int(64), unit.types.ptr());
            (vec![ptr, word], word)
        },
        search,
    );
    let code = text(&host);
    assert_eq!(code.matches("br i1").count(), 1, "{code}");
    assert_eq!(code.matches("phi").count(), 1, "{code}");
    let jit = Jit::new(host, &["f"]).expect("compiles");
    for (bound, expected) in [(0, 1), (4, 7), (8, 9)] {
        let mut numbers = [1, 2, 7, 9];
        let args = &mut [Arg::I64s(&mut numbers), Arg::Int(bound)];
        assert_eq!(jit.call("f", args).expect("runs").i64(), expected);
    }
}

#[test]
fn rolled_for_is_not_unrolled() {
    let additions = |flags: Flags| {
        let mut host = exported(
            |unit| {
                let (word, ptr) = (unit.types.int(64), unit.types.ptr());
                (vec![word, ptr], unit.types.float(FloatKind::F64))
            },
            |b| {
                let [n, x] = b.body.params().try_into().expect("two parameters");
                let real = b.unit.types.float(FloatKind::F64);
                let zero = b.float(real, 0.0);
                let (op, region) = b.for_(n, &[zero]);
                b.body.ops[op].flags = flags;
                let place = b.set_insertion_end(region);
                let params = b.body.region_params(region).to_vec();
                let at = b.addr(real, x, params[0]);
                let value = b.load(real, at);
                let sum = b.fadd(params[1], value);
                b.yield_(&[sum]);
                b.restore_insertion_point(place);
                let sum = b.body.result(op);
                b.return_(Some(sum));
            },
        );
        host.run(Pipeline::Late(OptLevel::O3))
            .expect("late pipeline");
        text(&host).matches("fadd double").count()
    };
    assert_eq!(additions(Flags::NO_RUNTIME_UNROLL), 1);
    assert!(additions(Flags::NONE) > 1, "LLVM would write it out");
}
