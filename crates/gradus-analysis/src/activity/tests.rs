//! Tests of activity and cell types on small bodies: each test states the active and the inactive values.

mod address_words;
mod several_targets;

use crate::{
    Activity, AliasSets, ArgActivity, BodyActivity, CallGraph, MemoryActivity, Request,
    ShadowPresence, ShadowState, TypeMap, Variant, View, request_findings, variant_findings,
};
use crate::{AliasSetId, BitRange, CellRef, CopyKind, LaneKind};
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, Code, Diagnostic, FloatKind, FuncId, Severity,
    TypeId, Unit, Value,
};

/// A program under construction.
#[derive(Default)]
struct Program {
    unit: Unit,
}

impl Program {
    /// Defines `name` with the given parameter and result types. `build` returns the results.
    fn define(
        &mut self,
        name: &str,
        params: &[TypeId],
        result: TypeId,
        build: impl FnOnce(&mut Builder<'_>, &[Value]) -> Option<Value>,
    ) -> FuncId {
        let ty = self.unit.types.func(result, params.to_vec());
        let func = self.unit.declare(name, ty, AttrSet::default());
        let mut body = Body::new(params);
        let values = body.params().to_vec();
        let mut builder = Builder::new(&mut self.unit, &mut body);
        let value = build(&mut builder, &values);
        builder.return_(value);
        self.unit.functions[func].defined = true;
        self.unit.functions[func].body = Some(Box::new(body));
        func
    }
    fn types(&mut self) -> (TypeId, TypeId, TypeId, TypeId) {
        let types = &mut self.unit.types;
        (types.f64(), types.ptr(), types.int(64), types.void())
    }
    fn study(&self, root: FuncId, args: &[Activity], result: bool) -> Study<'_> {
        self.study_with(root, args, result, |_| {})
    }
    /// Analyses the program with alias sets that `edit` has changed.
    fn study_with(
        &self,
        root: FuncId,
        args: &[Activity],
        result: bool,
        edit: impl FnOnce(&mut AliasSets),
    ) -> Study<'_> {
        let closure = CallGraph::of(&self.unit, &[root]);
        let mut memory = AliasSets::of(&self.unit, &closure);
        edit(&mut memory);
        let words = TypeMap::of(&self.unit, &closure, &memory);
        let request = Request {
            root,
            args: args.to_vec(),
            result,
        };
        let facts = View {
            unit: &self.unit,
            closure: &closure,
            memory: &memory,
            words: &words,
        };
        let classes = MemoryActivity::of(facts, &request);
        let variant = request.variant(facts);
        let root = BodyActivity::of(facts, &classes, &variant);
        Study {
            unit: &self.unit,
            findings: variant_findings(facts, &classes, &variant, &root),
            memory_findings: request_findings(facts, &request, &classes),
            root,
            classes,
            closure,
            memory,
            words,
        }
    }
}

struct Study<'a> {
    unit: &'a Unit,
    closure: CallGraph,
    memory: AliasSets,
    words: TypeMap,
    classes: MemoryActivity,
    root: BodyActivity,
    /// Diagnostics for the memory of the request.
    memory_findings: Vec<Diagnostic>,
    /// Diagnostics for the ops of the root's variant.
    findings: Vec<Diagnostic>,
}

impl Study<'_> {
    /// Returns the shadow state of all alias sets behind a pointer.
    fn state(&self, func: FuncId, value: Value) -> ShadowPresence {
        let sets = self.memory.alias_sets_of(func, value);
        let mut states = sets.into_iter().map(|set| self.classes.state(set));
        let first = states.next().expect("a pointer into memory");
        assert!(states.all(|state| state == first), "one state per pointer");
        first
    }
    /// Returns the only alias set behind a pointer.
    fn alias_set(&self, func: FuncId, value: Value) -> AliasSetId {
        let sets = self.memory.alias_sets_of(func, value);
        let [set] = sets[..] else {
            panic!("a pointer into one alias set: {sets:?}");
        };
        set
    }
    /// Returns the only target of a pointer.
    fn target(&self, func: FuncId, value: Value) -> CellRef {
        let targets = self.memory.targets(func, value);
        let [target] = *targets else {
            panic!("a pointer with one target: {targets:?}");
        };
        target
    }
    fn view(&self) -> View<'_> {
        View {
            unit: self.unit,
            closure: &self.closure,
            memory: &self.memory,
            words: &self.words,
        }
    }
    fn variant(&self, variant: &Variant) -> BodyActivity {
        BodyActivity::of(self.view(), &self.classes, variant)
    }
    fn variant_findings(&self, variant: &Variant) -> Vec<Diagnostic> {
        variant_findings(self.view(), &self.classes, variant, &self.variant(variant))
    }
}

use Activity::{Const, Dup, Out};

#[test]
fn sum_is_active_and_index_is_not() {
    let mut program = Program::default();
    let (double, ptr, word, _) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr, word], double, |b, p| {
        let zero = b.float(double, 0.0);
        let (op, region) = b.for_(p[1], &[zero]);
        let outside = b.set_insertion_end(region);
        let params = b.body.region_params(region).to_vec();
        let at = b.addr(double, p[0], params[0]);
        let x = b.load(double, at);
        let square = b.fmul(x, x);
        let sum = b.fadd(params[1], square);
        b.yield_(&[sum]);
        b.restore_insertion_point(outside);
        seen = vec![x, square, sum, params[1], params[0], at];
        Some(b.body.result(op))
    });
    let study = program.study(f, &[Dup, Const], true);
    let active: Vec<bool> = seen.iter().map(|v| study.root.active(*v)).collect();
    assert_eq!(active, [true, true, true, true, false, false]);
    assert_eq!(study.root.shadow(seen[5]), ShadowState::Real);
    assert_eq!(study.findings, []);
    let idle = program.study(f, &[Const, Const], true);
    assert!(seen.iter().all(|v| !idle.root.active(*v)));
    assert_eq!(idle.state(f, seen[5]), ShadowPresence::Inactive);
}

#[test]
fn swapped_buffers_share_one_shadow_state() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr, ptr, word], void, |b, p| {
        let (_, region) = b.for_(p[2], &[p[0], p[1]]);
        let outside = b.set_insertion_end(region);
        let params = b.body.region_params(region).to_vec();
        let x = b.load(double, params[1]);
        let y = b.fmul(x, x);
        b.store(y, params[2]);
        b.yield_(&[params[2], params[1]]);
        b.restore_insertion_point(outside);
        seen = vec![params[1], params[2], y];
        None
    });
    let study = program.study(f, &[Dup, Dup, Const], false);
    let sets = study.memory.alias_sets_of(f, seen[0]);
    assert_eq!(sets, study.memory.alias_sets_of(f, seen[1]));
    assert_eq!(sets.len(), 2);
    assert_eq!(study.state(f, seen[0]), ShadowPresence::Active);
    assert_eq!(study.root.shadow(seen[1]), ShadowState::Real);
    assert!(study.root.active(seen[2]));
    let mixed = program.study(f, &[Dup, Const, Const], false);
    assert_eq!(mixed.state(f, seen[0]), ShadowPresence::Maybe);
    assert_eq!(mixed.root.shadow(seen[1]), ShadowState::Maybe);
    assert!(mixed.root.active(seen[2]));
}

#[test]
fn list_walk_has_maybe_shadow() {
    let mut program = Program::default();
    let (double, ptr, _, _) = program.types();
    let node = program.unit.types.tuple(vec![double, ptr]);
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr], double, |b, p| {
        let zero = b.float(double, 0.0);
        let (op, region) = b.loop_(&[p[0], zero], &[double]);
        let outside = b.set_insertion_end(region);
        let params = b.body.region_params(region).to_vec();
        let x = b.load(double, params[0]);
        let sum = b.fadd(params[1], x);
        let eight = b.i64(8);
        let at = b.byte_addr(params[0], eight);
        let next = b.load(ptr, at);
        let null = b.zero(ptr);
        let more = b.icmp(gradus_ir::IntPredicate::Ne, next, null);
        b.repeat(more, &[next, sum], &[sum]);
        b.restore_insertion_point(outside);
        seen = vec![next, sum, x];
        Some(b.body.result(op))
    });
    let study = program.study(f, &[Dup], true);
    // If the caller gave a node no shadow, the primal node is its own shadow.
    assert_eq!(study.root.shadow(seen[0]), ShadowState::Maybe);
    assert!(study.root.active(seen[1]) && study.root.active(seen[2]));
    let class = study.alias_set(f, seen[0]);
    assert_eq!(study.memory.pointees(class), [class]);
    assert_eq!(study.memory.leaves_of(node).len(), 2);
    let place = study.target(f, seen[0]);
    let kind = study.words.block_kind(&study.memory, &[place], Some(16));
    let crate::CopyKind::Cells { words, .. } = kind else {
        panic!("a double and a pointer: {kind:?}");
    };
    assert_eq!(words.len(), 2);
}

#[test]
fn inactive_scratch_has_no_shadow() {
    let mut program = Program::default();
    let (double, ptr, word, _) = program.types();
    let malloc = {
        let ty = program.unit.types.func(ptr, vec![word]);
        program.unit.declare("malloc", ty, AttrSet::default())
    };
    let mut seen = Vec::new();
    let f = program.define("f", &[double, double], double, |b, p| {
        let size = b.i64(8);
        let (a, c) = (b.call(malloc, &[size]), b.call(malloc, &[size]));
        let (a, c) = (b.body.result(a), b.body.result(c));
        b.store(p[0], a);
        b.store(p[1], c);
        let (x, y) = (b.load(double, a), b.load(double, c));
        seen = vec![a, c, x, y];
        Some(b.fmul(x, y))
    });
    let study = program.study(f, &[Out, Const], true);
    assert_eq!(study.state(f, seen[0]), ShadowPresence::Active);
    assert_eq!(study.state(f, seen[1]), ShadowPresence::Inactive);
    assert_eq!(study.root.shadow(seen[0]), ShadowState::Real);
    assert_eq!(study.root.shadow(seen[1]), ShadowState::None);
    assert!(study.root.active(seen[2]) && !study.root.active(seen[3]));
}

#[test]
fn active_const_work_array_is_refused() {
    let mut program = Program::default();
    let (double, ptr, _, _) = program.types();
    let f = program.define("f", &[ptr, ptr], double, |b, p| {
        let x = b.load(double, p[0]);
        b.store(x, p[1]);
        Some(b.load(double, p[1]))
    });
    let study = program.study(f, &[Dup, Const], true);
    let codes: Vec<Code> = study.memory_findings.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::BadRequest]);
    let fine = program.study(f, &[Dup, Dup], true);
    assert_eq!(fine.memory_findings, []);
}

#[test]
fn variants_are_context_sensitive() {
    let mut program = Program::default();
    let (double, ptr, _, _) = program.types();
    let square = program.define("square", &[ptr], double, |b, p| {
        let x = b.load(double, p[0]);
        Some(b.fmul(x, x))
    });
    let mut calls = Vec::new();
    let f = program.define("f", &[ptr, ptr], double, |b, p| {
        calls = vec![b.call(square, &[p[0]]), b.call(square, &[p[1]])];
        let (x, y) = (b.body.result(calls[0]), b.body.result(calls[1]));
        Some(b.fadd(x, y))
    });
    let study = program.study(f, &[Dup, Const], true);
    let call = |i: usize| study.root.call(calls[i]).expect("a call").clone();
    assert!(call(0).active && call(0).result.active);
    assert!(!call(1).active && !call(1).result.active);
    let real = ArgActivity {
        active: false,
        shadow: ShadowState::Real,
    };
    let variant = call(0).variant.expect("a body");
    assert_eq!(
        (variant.args.as_slice(), variant.result),
        (&[real][..], true)
    );
    assert!(study.variant(&variant).result().active);
    let idle = call(1).variant.expect("a body");
    assert!(!study.variant(&idle).result().active);
}

#[test]
fn recursion_and_globals_reach_a_fixed_point() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let total = program.unit.add_global(gradus_ir::Global {
        name: "total".into(),
        ty: double,
        constant: false,
        thread_local: false,
        defined: true,
        linkage: gradus_ir::Linkage::Internal,
        align_bytes: 8,
        init: None,
        unparsed_symbols: Vec::new(),
        room_bytes: 0,
        derived_from: None,
    });
    let kind = gradus_ir::ConstKind::Global {
        global: total,
        offset: 0,
    };
    let address = program.unit.consts.intern(ptr, kind);
    let ty = program.unit.types.func(void, vec![double, word]);
    let walk = program.unit.declare("walk", ty, AttrSet::default());
    program.define("walk", &[double, word], void, |b, p| {
        let at = b.constant(address);
        let old = b.load(double, at);
        let new = b.fadd(old, p[0]);
        b.store(new, at);
        b.call(walk, &[new, p[1]]);
        None
    });
    let f = program.define("f", &[double], double, |b, p| {
        let n = b.i64(3);
        b.call(walk, &[p[0], n]);
        let at = b.constant(address);
        Some(b.load(double, at))
    });
    let study = program.study(f, &[Out], true);
    let place = study.memory.global(total).expect("it is mentioned");
    assert_eq!(study.classes.state(place.class), ShadowPresence::Active);
    assert!(study.classes.touches_globals(walk));
    assert!(study.root.result().active);
    let mut barred = program;
    barred.unit.globals[total].thread_local = true;
    let study = barred.study(f, &[Out], true);
    let findings = study.memory_findings.iter();
    let findings: Vec<_> = findings.map(|found| (found.code, found.severity)).collect();
    assert_eq!(findings, [(Code::Outlives, Severity::Warning)]);
    barred.unit.globals[total].defined = false;
    let study = barred.study(f, &[Out], true);
    assert_eq!(study.memory_findings[0].code, Code::ThreadLocalGlobal);
    barred.unit.globals[total].thread_local = false;
    let study = barred.study(f, &[Out], true);
    assert_eq!(study.memory_findings[0].code, Code::ExternalGlobal);
}

#[test]
fn unknown_functions_are_refused_on_active_paths_only() {
    let mut program = Program::default();
    let (double, _, _, void) = program.types();
    let ty = program.unit.types.func(double, vec![double]);
    let mystery = program.unit.declare("mystery", ty, AttrSet::default());
    let sine = program.unit.declare("sin", ty, AttrSet::default());
    let ty = program.unit.types.func(void, vec![]);
    let tick = program.unit.declare("tick", ty, AttrSet::default());
    let f = program.define("f", &[double, double], double, |b, p| {
        b.call(tick, &[]);
        let (a, c) = (b.call(sine, &[p[0]]), b.call(mystery, &[p[1]]));
        let (a, c) = (b.body.result(a), b.body.result(c));
        Some(b.fadd(a, c))
    });
    let study = program.study(f, &[Out, Out], true);
    let codes: Vec<Code> = study.findings.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::UnknownCallee]);
    assert_eq!(program.study(f, &[Out, Const], true).findings, []);
}

#[test]
fn float_and_int_share_an_integer() {
    let mut program = Program::default();
    let (_, ptr, word, _) = program.types();
    let single = program.unit.types.float(FloatKind::F32);
    let half = program.unit.types.int(32);
    let mut seen = Vec::new();
    let f = program.define("f", &[single, half, ptr], single, |b, p| {
        let low = b.cast(CastOp::BitCast, p[0], half);
        let low = b.cast(CastOp::ZExt, low, word);
        let high = b.cast(CastOp::ZExt, p[1], word);
        let by = b.int(word, 32);
        let high = b.binary(BinaryOp::Shl, high, by);
        let both = b.binary(BinaryOp::Or, high, low);
        b.store(both, p[2]);
        let back = b.load(word, p[2]);
        let back = b.cast(CastOp::Trunc, back, half);
        let x = b.cast(CastOp::BitCast, back, single);
        let number = b.binary(BinaryOp::LShr, both, by);
        seen = vec![low, high, both, back, number];
        Some(b.fmul(x, x))
    });
    let study = program.study(f, &[Out, Const, Dup], true);
    let float = BitRange {
        bit: 0,
        kind: LaneKind::Float(FloatKind::F32),
    };
    let lanes: Vec<&[BitRange]> = (seen.iter()).map(|v| study.words.lanes(f, *v)).collect();
    assert_eq!(lanes, [&[float][..], &[], &[float], &[float], &[]]);
    let active: Vec<bool> = seen.iter().map(|v| study.root.active(*v)).collect();
    assert_eq!(active, [true, false, true, true, false]);
    assert_eq!(study.findings, []);
}

#[test]
fn float_bit_arithmetic_is_refused() {
    let mut program = Program::default();
    let single = program.unit.types.float(FloatKind::F32);
    let half = program.unit.types.int(32);
    let root = program.define("root", &[single], single, |b, p| {
        let bits = b.cast(CastOp::BitCast, p[0], half);
        let one = b.int(half, 1);
        let halved = b.binary(BinaryOp::LShr, bits, one);
        let magic = b.int(half, 0x5f37_59df);
        let guess = b.sub(magic, halved);
        let y = b.cast(CastOp::BitCast, guess, single);
        Some(b.fmul(y, y))
    });
    let codes =
        |study: &Study<'_>| -> Vec<Code> { study.findings.iter().map(|d| d.code).collect() };
    assert_eq!(codes(&program.study(root, &[Out], true)), [Code::FloatBits]);
    let exponent = program.define("exponent", &[single], single, |b, p| {
        let bits = b.cast(CastOp::BitCast, p[0], half);
        let by = b.int(half, 23);
        let exponent = b.binary(BinaryOp::LShr, bits, by);
        let limit = b.int(half, 127);
        let large = b.icmp(gradus_ir::IntPredicate::Sgt, exponent, limit);
        let square = b.fmul(p[0], p[0]);
        Some(b.select(large, square, p[0]))
    });
    let study = program.study(exponent, &[Out], true);
    assert_eq!(codes(&study), []);
    assert!(study.root.result().active);
}

/// Returns `llvm.memcpy` of this unit.
fn memcpy(program: &mut Program) -> FuncId {
    let (_, ptr, word, void) = program.types();
    let bit = program.unit.types.int(1);
    let ty = program.unit.types.func(void, vec![ptr, ptr, word, bit]);
    let name = "llvm.memcpy.p0.p0.i64";
    program.unit.declare(name, ty, AttrSet::default())
}

#[test]
fn copies_of_bytes_are_typed_by_accesses_before_or_after() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let single = program.unit.types.float(FloatKind::F32);
    let copy = memcpy(&mut program);
    for (element, kind) in [(double, FloatKind::F64), (single, FloatKind::F32)] {
        let mut op = None;
        let f = program.define(&format!("f{kind:?}"), &[ptr, ptr, word], void, |b, p| {
            let no = b.bool(false);
            op = Some(b.call(copy, &[p[0], p[1], p[2], no]));
            let at = b.addr(element, p[0], p[2]);
            let x = b.load(element, at);
            let square = b.fmul(x, x);
            b.store(square, at);
            None
        });
        let study = program.study(f, &[Dup, Dup, Const], false);
        let body = program.unit.functions[f].body.as_deref().expect("a body");
        let op = op.expect("the copy");
        let found = (study.words).copy_kind(&program.unit, &study.memory, body, f, op);
        assert_eq!(found, CopyKind::Floats(kind));
        assert_eq!(study.findings, []);
    }
    let mut op = None;
    let f = program.define("blind", &[ptr, ptr, word], void, |b, p| {
        let no = b.bool(false);
        op = Some(b.call(copy, &[p[0], p[1], p[2], no]));
        None
    });
    let study = program.study(f, &[Dup, Dup, Const], false);
    assert_eq!(study.findings[0].code, Code::UnknownMemoryType);
}

#[test]
fn struct_with_indexed_array_layout() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let half = program.unit.types.int(32);
    let copy = memcpy(&mut program);
    let mut op = None;
    let v = program.unit.types.array(double, 3);
    let record = program.unit.types.tuple(vec![v, half, ptr]);
    let f = program.define("f", &[ptr, ptr, word], void, |b, p| {
        let (size, no) = (b.i64(40), b.bool(false));
        let own = b.alloca(record);
        op = Some(b.call(copy, &[own, p[1], size, no]));
        let at = b.addr(double, own, p[2]);
        let x = b.load(double, at);
        let by = b.i64(24);
        let count = b.byte_addr(own, by);
        let n = b.load(half, count);
        let one = b.int(half, 1);
        let n = b.add(n, one);
        b.store(n, count);
        let by = b.i64(32);
        let next = b.byte_addr(own, by);
        let next = b.load(ptr, next);
        b.store(x, next);
        None
    });
    let study = program.study(f, &[Dup, Dup, Const], false);
    let body = program.unit.functions[f].body.as_deref().expect("a body");
    let op = op.expect("the copy");
    let kind = (study.words).copy_kind(&program.unit, &study.memory, body, f, op);
    let CopyKind::Cells { words, .. } = kind else {
        panic!("words of several kinds: {kind:?}");
    };
    let words: Vec<(u64, LaneKind)> = words.iter().map(|w| (w.offset_bytes, w.kind)).collect();
    let float = LaneKind::Float(FloatKind::F64);
    let expected = [(0, float), (8, float), (16, float), (32, LaneKind::Pointer)];
    assert_eq!(words, expected);
}

#[test]
fn visible_opaque_cells_are_refused() {
    let mut program = Program::default();
    let (_, ptr, word, void) = program.types();
    let moved = program.define("moved", &[ptr, ptr], void, |b, p| {
        let x = b.load(word, p[1]);
        b.store(x, p[0]);
        None
    });
    let study = program.study(moved, &[Dup, Dup], false);
    assert_eq!(study.findings[0].code, Code::UnknownMemoryType);
    assert_eq!(program.study(moved, &[Const, Const], false).findings, []);
    let counted = program.define("counted", &[ptr, ptr], void, |b, p| {
        let x = b.load(word, p[1]);
        let one = b.i64(1);
        let y = b.add(x, one);
        b.store(y, p[0]);
        None
    });
    assert_eq!(program.study(counted, &[Dup, Dup], false).findings, []);
    let remade = program.define("remade", &[ptr, ptr], void, |b, p| {
        let x = b.load(word, p[1]);
        let bit = b.i64(1 << 52);
        let y = b.add(x, bit);
        b.store(y, p[0]);
        None
    });
    let study = program.study(remade, &[Dup, Dup], false);
    assert_eq!(study.findings[0].code, Code::UnknownMemoryType);
    assert_eq!(program.study(remade, &[Const, Const], false).findings, []);
}

#[test]
fn loaded_pointers_have_shadows() {
    let mut program = Program::default();
    let (double, ptr, word, _) = program.types();
    let mut seen = Vec::new();
    let f = program.define("f", &[ptr, word], double, |b, p| {
        let slot = b.addr(ptr, p[0], p[1]);
        let row = b.load(ptr, slot);
        let first = b.load(ptr, p[0]);
        b.store(first, slot);
        b.store(row, p[0]);
        let x = b.load(double, row);
        seen = vec![row, first, x];
        Some(b.fmul(x, x))
    });
    let study = program.study(f, &[Dup, Const], true);
    // The entry of a table without a shadow is its own shadow.
    assert_eq!(study.root.shadow(seen[0]), ShadowState::Maybe);
    assert!(study.root.active(seen[2]));
    assert_eq!(study.findings, []);
    let outer = study.alias_set(
        f,
        program.unit.functions[f]
            .body
            .as_ref()
            .expect("a body")
            .params()[0],
    );
    assert_eq!(study.classes.state(outer), ShadowPresence::Active);
    assert!(
        study
            .classes
            .holds_active_floats(study.alias_set(f, seen[0]))
    );
    let idle = program.study(f, &[Const, Const], true);
    assert_eq!(idle.root.shadow(seen[0]), ShadowState::None);
    assert!(!idle.root.active(seen[2]));
}

#[test]
fn function_table_resolves_callee() {
    let mut program = Program::default();
    let (double, ptr, word, _) = program.types();
    let square = program.define("square", &[double], double, |b, p| Some(b.fmul(p[0], p[0])));
    let pair = program.unit.types.array(ptr, 2);
    let relocation = |offset_bytes| gradus_ir::Relocation {
        offset_bytes,
        target: gradus_ir::Symbol::Func(square),
        addend: 0,
    };
    let table = program.unit.add_global(gradus_ir::Global {
        name: "table".into(),
        ty: pair,
        constant: true,
        thread_local: false,
        defined: true,
        linkage: gradus_ir::Linkage::Internal,
        align_bytes: 8,
        init: Some(gradus_ir::Initializer {
            bytes: vec![0; 16],
            relocations: vec![relocation(0), relocation(8)],
        }),
        unparsed_symbols: Vec::new(),
        room_bytes: 0,
        derived_from: None,
    });
    let kind = gradus_ir::ConstKind::Global {
        global: table,
        offset: 0,
    };
    let address = program.unit.consts.intern(ptr, kind);
    let signature = program.unit.functions[square].ty;
    let mut seen = Vec::new();
    let f = program.define("f", &[double, word], double, |b, p| {
        let base = b.constant(address);
        let slot = b.addr(ptr, base, p[1]);
        let callee = b.load(ptr, slot);
        let op = b.call_with(gradus_ir::CallInfo::plain(signature), callee, &[p[0]]);
        seen = vec![callee];
        Some(b.body.result(op))
    });
    let study = program.study(f, &[Out, Const], true);
    assert_eq!(study.root.shadow(seen[0]), ShadowState::None);
    assert!(study.classes.is_active_function(square));
    assert_eq!(study.findings, []);
}

#[test]
fn cyclic_copies_terminate() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let copy = memcpy(&mut program);
    let f = program.define("f", &[ptr, ptr, word], void, |b, p| {
        let (no, eight, size) = (b.bool(false), b.i64(8), b.i64(64));
        let later = b.byte_addr(p[0], eight);
        for bytes in [p[2], size] {
            b.call(copy, &[p[1], later, bytes, no]);
            b.call(copy, &[p[0], p[1], bytes, no]);
        }
        let x = b.load(double, p[0]);
        b.store(x, p[1]);
        None
    });
    let study = program.study(f, &[Dup, Dup, Const], false);
    let class = study.alias_set(
        f,
        program.unit.functions[f]
            .body
            .as_ref()
            .expect("a body")
            .params()[0],
    );
    assert!(study.words.types_of_set(class).has_float());
}

/// A C++ vector moves elements by a pointer difference: the cells of structures stay separate.
#[test]
fn pointer_differences_respect_modulus() {
    let mut program = Program::default();
    let (double, ptr, word, void) = program.types();
    let mut places = Vec::new();
    let f = program.define("f", &[ptr, word], void, |b, p| {
        let sixteen = b.i64(16);
        let far = b.binary(BinaryOp::Shl, p[1], sixteen);
        let at = b.byte_addr(p[0], far);
        let (end, begin) = (
            b.cast(CastOp::PtrToInt, at, word),
            b.cast(CastOp::PtrToInt, p[0], word),
        );
        let distance = b.binary(BinaryOp::Sub, end, begin);
        let moved = b.byte_addr(p[0], distance);
        let eight = b.i64(8);
        let second = b.byte_addr(moved, eight);
        let inner = b.load(ptr, second);
        let x = b.load(double, inner);
        b.store(x, moved);
        places = vec![moved, second];
        None
    });
    let study = program.study(f, &[Dup, Const], false);
    let seen = |value| study.words.type_at(&study.memory, study.target(f, value));
    assert!(seen(places[0]).has_float() && !seen(places[0]).has_pointer());
    assert!(seen(places[1]).has_pointer() && !seen(places[1]).has_float());
}

#[test]
fn modified_byval_is_refused() {
    let mut program = Program::default();
    let (double, ptr, _, _) = program.types();
    let pair = program.unit.types.array(double, 3);
    let by_value = gradus_ir::Attr {
        name: "byval".into(),
        value: gradus_ir::AttrValue::Type(pair),
    };
    let attrs = AttrSet {
        params: vec![vec![by_value]],
        ..AttrSet::default()
    };
    let attrs = program.unit.intern_attrs(attrs);
    for changes in [false, true] {
        let name = if changes { "changes" } else { "reads" };
        let inner = program.define(name, &[ptr], double, |b, p| {
            let x = b.load(double, p[0]);
            let square = b.fmul(x, x);
            if changes {
                b.store(square, p[0]);
            }
            Some(b.load(double, p[0]))
        });
        program.unit.functions[inner].attrs = attrs;
        let outer = program.define(&format!("{name}_root"), &[ptr], double, |b, p| {
            let op = b.call(inner, &[p[0]]);
            if let gradus_ir::OpKind::Call(info) = &mut b.body.ops[op].kind {
                info.attrs = Some(attrs);
            }
            Some(b.body.result(op))
        });
        let study = program.study(outer, &[Dup], true);
        let calls = study.root.calls().filter_map(|c| c.variant.clone());
        let findings: Vec<Code> = calls
            .flat_map(|v| study.variant_findings(&v))
            .map(|d| d.code)
            .collect();
        assert_eq!(findings, vec![Code::NoDerivative; usize::from(changes)]);
    }
}

#[test]
fn integer_zero_over_floats_is_float() {
    let mut program = Program::default();
    let (double, ptr, _, void) = program.types();
    let mut zero = None;
    let f = program.define("f", &[ptr], void, |b, p| {
        let x = b.load(double, p[0]);
        let y = b.fmul(x, x);
        b.store(y, p[0]);
        let nothing = b.i64(0);
        b.store(nothing, p[0]);
        zero = Some(nothing);
        None
    });
    let study = program.study(f, &[Dup], false);
    let zero = zero.expect("the constant");
    let float = BitRange {
        bit: 0,
        kind: LaneKind::Float(FloatKind::F64),
    };
    assert_eq!(study.words.lanes(f, zero), &[float]);
    assert!(!study.root.active(zero));
    assert_eq!(study.findings, []);
}
