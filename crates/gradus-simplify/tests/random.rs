//! Random structured programs keep their meaning after every single pass and after all passes.
//!
//! Programs use integers, floats, two arrays and stack slots, with branches, switches and all loop forms that
//! importers produce. The interpreter executes each program before and after on several inputs.

use gradus_analysis::{AliasOptions, CallGraph, Effects, PassContext};
use gradus_edit::{promote_slots, split_allocas};
use gradus_interp::{Machine, Value as Datum};
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, Flags, FloatPredicate, FuncId, Function, IntPredicate,
    Linkage, OpKind, Region, TypeId, Unit, Value, print_function, verify_function,
};
use gradus_simplify::{PASSES, simplify};

/// Pseudo-random number generator (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % below
    }
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())]
    }
}

/// Visible values by type.
#[derive(Clone, Default)]
struct Scope {
    ints: Vec<Value>,
    floats: Vec<Value>,
    truths: Vec<Value>,
}

struct ProgramBuilder<'a, 'b> {
    b: &'a mut Builder<'b>,
    dice: Dice,
    i64: TypeId,
    f64: TypeId,
    arrays: [Value; 2],
    slots: Vec<Value>,
    fabs: FuncId,
    left: usize,
}

impl ProgramBuilder<'_, '_> {
    fn block(&mut self, scope: &mut Scope, depth: usize) {
        for _ in 0..2 + self.dice.roll(6) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            match self.dice.roll(20) {
                0..4 => self.int_op(scope),
                4..8 => self.float_op(scope),
                8 => self.compare(scope),
                9 => self.select(scope),
                10..14 => self.memory(scope),
                14 | 15 if depth < 4 => self.branch(scope, depth),
                16 if depth < 4 => self.switch(scope, depth),
                17 if depth < 4 => self.counted_for(scope, depth),
                18 | 19 if depth < 4 => self.rotated_loop(scope, depth),
                _ => self.int_op(scope),
            }
        }
    }

    fn int(&mut self, scope: &Scope) -> Value {
        match self.dice.roll(3) {
            0 => {
                let n = self.dice.pick(&[0i64, 1, -1, 2, 3, 7]);
                self.b.i64(n)
            }
            _ => self.dice.pick(&scope.ints),
        }
    }
    fn float(&mut self, scope: &Scope) -> Value {
        match self.dice.roll(4) {
            0 => {
                let x = self.dice.pick(&[0.0, -0.0, 1.0, -1.0, 0.5, 3.0]);
                self.b.float(self.f64, x)
            }
            _ => self.dice.pick(&scope.floats),
        }
    }

    fn int_op(&mut self, scope: &mut Scope) {
        use BinaryOp::*;
        let op = self
            .dice
            .pick(&[Add, Sub, Mul, And, Or, Xor, Shl, LShr, UDiv]);
        let a = self.int(scope);
        let mut c = self.int(scope);
        if matches!(op, Shl | LShr | UDiv) {
            let n = 1 + self.dice.roll(5) as i64;
            c = self.b.i64(n);
        }
        let r = self.b.binary(op, a, c);
        scope.ints.push(r);
    }

    fn float_op(&mut self, scope: &mut Scope) {
        use BinaryOp::*;
        let (a, c) = (self.float(scope), self.float(scope));
        let r = match self.dice.roll(7) {
            0 => self.b.fneg(a),
            1 => {
                let call = self.b.call(self.fabs, &[a]);
                self.b.body.result(call)
            }
            2 => {
                let n = self.int(scope);
                let low = self.b.i64(255);
                let n = self.b.binary(And, n, low);
                self.b.cast(gradus_ir::CastOp::SIToFP, n, self.f64)
            }
            _ => {
                let op = self.dice.pick(&[FAdd, FSub, FMul, FDiv]);
                self.b.binary(op, a, c)
            }
        };
        scope.floats.push(r);
    }

    fn compare(&mut self, scope: &mut Scope) {
        use IntPredicate::*;
        let r = if self.dice.roll(2) == 0 {
            let p = self.dice.pick(&[Eq, Ne, Slt, Sle, Sgt, Ult, Uge]);
            let (a, c) = (self.int(scope), self.int(scope));
            self.b.icmp(p, a, c)
        } else {
            let p = self.dice.pick(&[
                FloatPredicate::Olt,
                FloatPredicate::Ueq,
                FloatPredicate::Oge,
            ]);
            let (a, c) = (self.float(scope), self.float(scope));
            self.b.fcmp(p, a, c)
        };
        let r = match self.dice.roll(3) {
            0 => {
                let yes = self.b.bool(true);
                self.b.binary(BinaryOp::Xor, r, yes)
            }
            _ => r,
        };
        scope.truths.push(r);
    }

    fn select(&mut self, scope: &mut Scope) {
        let c = self.dice.pick(&scope.truths);
        let (x, y) = (self.float(scope), self.float(scope));
        let r = self.b.select(c, x, y);
        scope.floats.push(r);
    }

    fn address(&mut self, scope: &Scope) -> Value {
        if self.dice.roll(3) == 0 {
            return self.dice.pick(&self.slots);
        }
        let index = self.int(scope);
        let low = self.b.i64(7);
        let index = self.b.binary(BinaryOp::And, index, low);
        let array = self.dice.pick(&self.arrays);
        self.b.addr(self.f64, array, index)
    }

    fn memory(&mut self, scope: &mut Scope) {
        let p = self.address(scope);
        if self.dice.roll(2) == 0 {
            let x = self.float(scope);
            self.b.store(x, p);
        } else {
            let x = self.b.load(self.f64, p);
            scope.floats.push(x);
        }
    }

    fn arm(&mut self, scope: &Scope, region: Region, depth: usize) {
        let mut inner = scope.clone();
        let place = self.b.set_insertion_end(region);
        self.block(&mut inner, depth + 1);
        let (n, x) = (self.int(&inner), self.float(&inner));
        self.b.yield_(&[n, x]);
        self.b.restore_insertion_point(place);
    }

    fn publish_results(&mut self, scope: &mut Scope, op: gradus_ir::Op) {
        let results = self.b.body.results(op).to_vec();
        scope.ints.push(results[0]);
        scope.floats.push(results[1]);
    }

    fn branch(&mut self, scope: &mut Scope, depth: usize) {
        let c = self.dice.pick(&scope.truths);
        let (op, yes, no) = self.b.if_(c, &[self.i64, self.f64]);
        self.arm(scope, yes, depth);
        self.arm(scope, no, depth);
        self.publish_results(scope, op);
    }

    fn switch(&mut self, scope: &mut Scope, depth: usize) {
        let n = self.int(scope);
        let cases: Box<[u128]> = Box::new([0, 1, 3]);
        let op = self
            .b
            .op(OpKind::Switch(cases), &[n], &[self.i64, self.f64], 4);
        for region in self.b.body.op_regions(op).to_vec() {
            self.arm(scope, region, depth);
        }
        self.publish_results(scope, op);
    }

    fn small_trip_count(&mut self, scope: &Scope) -> Value {
        let n = self.int(scope);
        let low = self.b.i64(3);
        self.b.binary(BinaryOp::And, n, low)
    }

    fn counted_for(&mut self, scope: &mut Scope, depth: usize) {
        let n = self.small_trip_count(scope);
        let (k, x) = (self.int(scope), self.float(scope));
        let (op, region) = self.b.for_(n, &[k, x]);
        let params = self.b.body.region_params(region).to_vec();
        let mut inner = scope.clone();
        inner.ints.extend(&params[..2]);
        inner.floats.push(params[2]);
        self.arm(&inner, region, depth);
        self.publish_results(scope, op);
    }

    /// Builds a rotated loop as LLVM's optimiser emits it, with or without a guard and an additional exit.
    fn rotated_loop(&mut self, scope: &mut Scope, depth: usize) {
        let start = self.dice.roll(3) as i64;
        let start = self.b.i64(start);
        let bound = self.small_trip_count(scope);
        let (k, x) = (self.int(scope), self.float(scope));
        if self.dice.roll(2) == 0 {
            let c = self.b.icmp(IntPredicate::Slt, start, bound);
            let (op, yes, no) = self.b.if_(c, &[self.i64, self.f64]);
            let place = self.b.set_insertion_end(no);
            self.b.yield_(&[k, x]);
            self.b.set_insertion_end(yes);
            let inner = self.repeating_loop(scope, depth, (start, bound), (k, x));
            let results = self.b.body.results(inner).to_vec();
            self.b.yield_(&results);
            self.b.restore_insertion_point(place);
            self.publish_results(scope, op);
        } else {
            let op = self.repeating_loop(scope, depth, (start, bound), (k, x));
            self.publish_results(scope, op);
        }
    }

    fn repeating_loop(
        &mut self,
        scope: &Scope,
        depth: usize,
        (start, bound): (Value, Value),
        (k, x): (Value, Value),
    ) -> gradus_ir::Op {
        let step = 1 + self.dice.roll(2) as i64;
        let (op, region) = self.b.loop_(&[start, k, x], &[self.i64, self.f64]);
        let params = self.b.body.region_params(region).to_vec();
        let mut inner = scope.clone();
        inner.ints.extend(&params[..2]);
        inner.floats.push(params[2]);
        let place = self.b.set_insertion_end(region);
        self.block(&mut inner, depth + 1);
        let step = self.b.i64(step);
        let next = self.b.add(params[0], step);
        self.b.set_flags(next, Flags::NSW);
        let read = self.dice.pick(&[next, next, params[0]]);
        let mut again = self.b.icmp(IntPredicate::Slt, read, bound);
        if self.dice.roll(3) == 0 {
            let other = self.dice.pick(&inner.truths);
            again = self.b.binary(BinaryOp::And, again, other);
        }
        let (n, y) = (self.int(&inner), self.float(&inner));
        let (r, s) = (self.int(&inner), self.float(&inner));
        let r = self.dice.pick(&[r, n, next, params[0]]);
        self.b.repeat(again, &[next, n, y], &[r, s]);
        self.b.restore_insertion_point(place);
        op
    }
}

/// Builds a unit with a random function `f(n, x, p, q) -> f64`.
fn program(seed: u64) -> (Unit, FuncId) {
    let mut unit = Unit::default();
    let (i64, f64) = (unit.types.int(64), unit.types.f64());
    let ptr = unit.types.ptr();
    unit.types.int(1);
    let one = unit.types.func(f64, vec![f64]);
    let fabs = unit.declare("llvm.fabs.f64", one, AttrSet::default());
    let ty = unit.types.func(f64, vec![i64, f64, ptr, ptr]);
    let mut body = Body::new(&[i64, f64, ptr, ptr]);
    let params = body.params().to_vec();
    let mut b = Builder::new(&mut unit, &mut body);
    let slots: Vec<Value> = (0..3).map(|_| b.alloca(f64)).collect();
    let whole = b.unit.types.array(f64, 2);
    let pair = b.alloca(whole);
    let second = b.i64(1);
    let second = b.addr(f64, pair, second);
    for &slot in slots.iter().chain([&pair, &second]) {
        let zero = b.float(f64, 0.25);
        b.store(zero, slot);
    }
    let zero = b.i64(0);
    let positive = b.icmp(IntPredicate::Sgt, params[0], zero);
    let mut scope = Scope {
        ints: vec![params[0]],
        floats: vec![params[1]],
        truths: vec![positive],
    };
    let mut maker = ProgramBuilder {
        b: &mut b,
        dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        i64,
        f64,
        arrays: [params[2], params[3]],
        slots: slots.into_iter().chain([pair, second]).collect(),
        fabs,
        left: 70,
    };
    maker.block(&mut scope, 0);
    maker.block(&mut scope, 0);
    let (n, x) = (maker.int(&scope), maker.float(&scope));
    let wide = b.cast(gradus_ir::CastOp::SIToFP, n, f64);
    let sum = b.fadd(wide, x);
    b.return_(Some(sum));
    let attrs = unit.intern_attrs(AttrSet::default());
    let func = unit.add_function(Function {
        name: "f".into(),
        ty,
        attrs,
        convention: 0,
        linkage: Linkage::External,
        defined: true,
        body: Some(Box::new(body)),
        derived_from: None,
        param_names: Vec::new(),
        span: None,
        source_name: None,
    });
    (unit, func)
}

/// Returns the function's result and final array contents; `None` if the program has an error.
fn observable_result(unit: &Unit, n: i64, x: f64) -> Option<Vec<u64>> {
    let mut machine = Machine::new(unit);
    let p = machine
        .alloc_f64(&[1.0, -2.0, 0.5, 3.0, 0.0, -0.0, 7.0, 1e3])
        .ok()?;
    let q = machine
        .alloc_f64(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
        .ok()?;
    let args = [Datum::i64(n), Datum::f64(x), Datum::ptr(p), Datum::ptr(q)];
    let result = machine.call("f", &args).ok()??;
    let mut all = vec![f64::from_bits(result.bits()?)];
    all.extend(machine.read_f64(p, 8).ok()?);
    all.extend(machine.read_f64(q, 8).ok()?);
    // All NaNs are equal.
    let bits = |x: f64| {
        if x.is_nan() {
            f64::NAN.to_bits()
        } else {
            x.to_bits()
        }
    };
    Some(all.into_iter().map(bits).collect())
}

const INPUTS: &[(i64, f64)] = &[
    (0, 1.5),
    (1, -0.0),
    (2, 0.25),
    (3, -3.0),
    (7, 1e10),
    (-1, 2.0),
];

fn check_pass(seed: u64, what: &str, run: impl Fn(&mut Unit, &mut Body, &PassContext)) -> usize {
    let (before, func) = program(seed);
    let broken = verify_function(&before, func);
    assert!(broken.is_empty(), "seed {seed}: {broken:?}");
    let mut after = before.clone();
    let closure = CallGraph::of(&after, &[func]);
    let effects = Effects::of(&after, &closure);
    let alias = AliasOptions::default();
    let facts = PassContext {
        function: Some(func),
        effects: &effects,
        alias: &alias,
    };
    let mut body = *after.functions[func].body.take().expect("a body");
    run(&mut after, &mut body, &facts);
    after.functions[func].body = Some(Box::new(body));
    let text = || {
        format!(
            "{}\n{}",
            print_function(&before, func),
            print_function(&after, func)
        )
    };
    let broken = verify_function(&after, func);
    assert!(
        broken.is_empty(),
        "seed {seed} after {what}: {broken:?}\n{}",
        text()
    );
    let mut compared = 0;
    for &(n, x) in INPUTS {
        let Some(was) = observable_result(&before, n, x) else {
            continue;
        };
        compared += 1;
        let is = observable_result(&after, n, x);
        assert_eq!(
            Some(was),
            is,
            "seed {seed} after {what} on {n}, {x}:\n{}",
            text()
        );
    }
    compared
}

const PROGRAMS: u64 = 300;

#[test]
fn each_pass_preserves_meaning() {
    let mut compared = 0;
    for seed in 0..PROGRAMS {
        let pass = &PASSES[seed as usize % PASSES.len()];
        compared += check_pass(seed, pass.name, |unit, body, facts| {
            (pass.run)(unit, body, facts);
        });
    }
    assert!(
        compared as u64 > 5 * PROGRAMS,
        "only {compared} runs were compared"
    );
}

#[test]
fn all_passes_preserve_meaning() {
    for seed in 0..PROGRAMS {
        check_pass(1000 + seed, "all", |unit, body, facts| {
            simplify(unit, body, facts);
        });
    }
}

#[test]
fn promotion_preserves_meaning() {
    for seed in 0..PROGRAMS {
        check_pass(2000 + seed, "promotion", |unit, body, facts| {
            assert_eq!(split_allocas(unit, body), 1);
            assert_eq!(promote_slots(unit, body), 5);
            simplify(unit, body, facts);
        });
    }
}
