//! Cost model: the work of an iteration in simple operations. The estimate detects loops too small for a fork,
//! and predicts no time.
//!
//! - Inner loops with a trip count known before the parallel loop count in full; other loops count
//!   [`TRIPS_IF_UNKNOWN`] iterations.
//! - A call of a program function costs its body, with arguments for parameters ([`CallCosts`]). A recursive call,
//!   or a call of a function with a loop whose trip count does not depend on arguments alone, counts as large.
//! - A call of unknown code, or of code that may block, is unbounded ([`UNBOUNDED_WORK`]): two such calls justify a
//!   fork, and the runtime measures the profit.
//! - Recursion, loops without a count and nested loops of unknown trip counts may be unbounded, too, and set
//!   [`IterationWork::unbounded`]; the caller decides.
//! - If LLVM can vectorise the iterations, ops on 32 bits or less count half: a register holds twice as many
//!   elements.

use super::library_calls::{is_instruction, library_call_work};
use gradus_analysis::CallGraph;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, FuncId, IntPredicate, Linkage, Op, OpKind, Region,
    RmwOp, Unit, Value,
};
use std::collections::HashMap;

const TRIPS_IF_UNKNOWN: u64 = 16;
pub(super) const CALL_WORK: u64 = 2_000;
/// The cost of a call of unknown duration.
const UNBOUNDED_WORK: u64 = 1 << 17;
/// The nesting depth of loops with unknown trip counts that counts as unbounded; a loop without a count adds as
/// many levels.
const UNBOUNDED_DEPTH: u32 = 2;
pub(super) const DIVISION_WORK: u64 = 10;
const UNITS_PER_OP: u64 = 2;
const NARROW_BITS: u32 = 32;
/// An atomic operation, even if uncontended: 6 to 9 ns, and surrounding code is not vectorised.
const ATOMIC_WORK: u64 = 30;
/// The maximum number of workers considered.
pub(crate) const THREADS_MAX: u64 = 1 << 16;
/// Saturation limit for trip counts of inner loops and for op counts.
const FACTOR_MAX: u64 = 1 << 18;
/// Saturation limit for the trip count: as many single operations justify a fork.
const TRIPS_MAX: u64 = 1 << 20;
/// Saturation limit for the work of an iteration: the product with [`TRIPS_MAX`] does not overflow.
const ITERATION_WORK_MAX: u64 = 1 << 42;
/// The maximum number of trip counts in a product; further trip counts count as unknown.
const FACTORS_MAX: usize = 2;

/// Work per iteration: a constant plus multiples of values known before the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct IterationWork {
    pub(crate) fixed: u64,
    pub(crate) terms: Vec<(Vec<Value>, u64)>,
    /// True if functions unknown by name may be called.
    pub(crate) calls: bool,
    /// True if the work may be unbounded although all code is known.
    pub(crate) unbounded: bool,
}

/// Costs of calls of program functions, from code before lowering.
#[derive(Debug, Default)]
pub(crate) struct CallCosts {
    functions: HashMap<FuncId, CallCost>,
}

/// The cost of a call: a constant plus multiples of parameters.
#[derive(Clone, Debug)]
struct CallCost {
    fixed: u64,
    terms: Vec<(Vec<usize>, u64)>,
    calls: bool,
    /// The maximum nesting depth of loops with unknown trip counts; recursion counts as the relevant maximum.
    guess_depth: u32,
    /// True if calls in a loop do not prevent vectorisation.
    vectorizable: bool,
}

impl CallCost {
    /// Known code with unknown trip counts.
    const KNOWN_CODE: CallCost = CallCost {
        fixed: CALL_WORK,
        terms: Vec::new(),
        calls: true,
        guess_depth: 0,
        vectorizable: false,
    };
    const UNKNOWN_CODE: CallCost = CallCost {
        fixed: UNBOUNDED_WORK,
        terms: Vec::new(),
        calls: true,
        guess_depth: 0,
        vectorizable: false,
    };

    /// Returns the cost of a function without an entry in [`CallCosts`], or of an unknown callee.
    fn of_unsummarized(unit: &Unit, callee: Option<FuncId>) -> CallCost {
        let Some(callee) = callee else {
            return CallCost::UNKNOWN_CODE;
        };
        let is_short = match unit.known(callee) {
            Some(
                ExternalFn::OpenMp(_)
                | ExternalFn::Fork(_)
                | ExternalFn::Kernel(_)
                | ExternalFn::Exception(_),
            ) => true,
            Some(_) => unit
                .known_effects(callee)
                .is_some_and(|effects| !effects.may_block && !effects.has_callbacks),
            None => unit.functions[callee].body.is_some(),
        };
        match is_short {
            true => CallCost::KNOWN_CODE,
            false => CallCost::UNKNOWN_CODE,
        }
    }
}

impl CallCosts {
    /// Computes the costs of all functions of a call graph.
    pub(crate) fn of(unit: &Unit, closure: &CallGraph) -> CallCosts {
        let mut costs = CallCosts::default();
        for component in closure.components() {
            for &func in &component.functions {
                let quiet = CallCost {
                    calls: false,
                    ..CallCost::KNOWN_CODE
                };
                costs.functions.insert(func, quiet);
            }
            let found: Vec<(FuncId, CallCost)> = component
                .functions
                .iter()
                .map(|&func| (func, costs.function(unit, func)))
                .collect();
            let calls = found.iter().any(|(_, cost)| cost.calls);
            for (func, cost) in found {
                let cost = match component.recursive {
                    true => CallCost {
                        guess_depth: UNBOUNDED_DEPTH,
                        ..CallCost::KNOWN_CODE
                    },
                    false => cost,
                };
                costs.functions.insert(func, CallCost { calls, ..cost });
            }
        }
        costs
    }

    fn function(&self, unit: &Unit, func: FuncId) -> CallCost {
        let function = &unit.functions[func];
        let Some(body) = function.body.as_deref() else {
            return CallCost::of_unsummarized(unit, Some(func));
        };
        if function.linkage == Linkage::Interposable {
            return CallCost::UNKNOWN_CODE;
        }
        let mut count = WorkCounter::new(self, unit, body, body.root());
        count.run();
        let work = count.work;
        let large = CallCost {
            calls: work.calls,
            guess_depth: count.guesses,
            ..CallCost::KNOWN_CODE
        };
        if count.guessed {
            return large;
        }
        let place = |factor: &Value| body.params().iter().position(|p| p == factor);
        let mut terms = Vec::new();
        for (factors, cost) in work.terms {
            let Some(factors) = factors.iter().map(place).collect() else {
                return large;
            };
            terms.push((factors, cost));
        }
        CallCost {
            fixed: work.fixed,
            terms,
            calls: work.calls,
            guess_depth: count.guesses,
            vectorizable: self.is_vectorizable(unit, body, body.root()),
        }
    }

    /// Returns true if iterations of `region` are vectorisable: no branches, no loops, and only calls of
    /// instructions and of functions with this property.
    fn is_vectorizable(&self, unit: &Unit, body: &Body, region: Region) -> bool {
        let fits = |op: Op| match body.kind(op) {
            OpKind::Call(_) => {
                let callee = unit.callee(body, op);
                let known = callee.and_then(|func| unit.known(func));
                let own = callee.and_then(|func| self.functions.get(&func));
                matches!(known, Some(ExternalFn::Math(id)) if is_instruction(id))
                    || own.is_some_and(|cost| cost.vectorizable)
            }
            kind => kind.call_info().is_none() && body.op_regions(op).is_empty(),
        };
        body.ops_in(region).all(fits)
    }

    /// Returns the work of one execution of `region`.
    pub(crate) fn region(&self, unit: &Unit, body: &Body, region: Region) -> IterationWork {
        let mut count = WorkCounter::new(self, unit, body, region);
        count.run();
        count.work
    }

    /// Returns the number of threads that match the speed of a single thread. Atomics between iterations
    /// ([`Flags::ATOMIC_ACROSS_ITERATIONS`]) cost more with concurrent threads than the plain ops of a single thread.
    pub(crate) fn break_even_threads(&self, unit: &Unit, body: &Body, region: Region) -> u64 {
        let work = |between: u64| {
            let mut count = WorkCounter::new(self, unit, body, region);
            count.between = between;
            count.run();
            count.work.estimate()
        };
        work(ATOMIC_WORK) / work(1).max(1)
    }
}

/// Returns the number of threads that match one thread with plain adds on calls among `functions`; `None`
/// without adds. The work of all functions is summed up; how often recursion runs each function is unknown.
pub(crate) fn break_even_threads_of_calls(unit: &Unit, functions: &[FuncId]) -> Option<u64> {
    let nothing = CallCost {
        fixed: 0,
        terms: Vec::new(),
        calls: false,
        guess_depth: 0,
        vectorizable: false,
    };
    let costs = CallCosts {
        functions: functions
            .iter()
            .map(|func| (*func, nothing.clone()))
            .collect(),
    };
    let work = |added: u64| {
        let bodies = functions
            .iter()
            .filter_map(|func| unit.functions[*func].body.as_deref());
        let counts = bodies.map(|body| {
            let mut count = WorkCounter::new(&costs, unit, body, body.root());
            count.added = Some(added);
            count.run();
            count.work.estimate()
        });
        counts.fold(0, u64::saturating_add)
    };
    let (beside, alone) = (work(ATOMIC_WORK), work(1).max(1));
    (beside > alone).then_some(beside.div_ceil(alone))
}

/// A region under analysis; costs are in halves of operations.
struct WorkCounter<'a> {
    costs: &'a CallCosts,
    unit: &'a Unit,
    body: &'a Body,
    region: Region,
    work: IterationWork,
    /// True if the trip count of a loop is a guess.
    guessed: bool,
    /// The maximum nesting depth of such loops.
    guesses: u32,
    /// The cost of an atomic operation between iterations.
    between: u64,
    /// The cost of every atomic addition, if overridden.
    added: Option<u64>,
}

impl<'a> WorkCounter<'a> {
    fn new(costs: &'a CallCosts, unit: &'a Unit, body: &'a Body, region: Region) -> Self {
        WorkCounter {
            costs,
            unit,
            body,
            region,
            work: IterationWork::default(),
            guessed: false,
            guesses: 0,
            between: 1,
            added: None,
        }
    }

    fn run(&mut self) {
        self.count();
        self.work.unbounded = self.guesses >= UNBOUNDED_DEPTH;
        self.work.fixed = self.work.fixed.div_ceil(UNITS_PER_OP);
        for (_, cost) in &mut self.work.terms {
            *cost = cost.div_ceil(UNITS_PER_OP);
        }
    }

    fn count(&mut self) {
        let mut straight: HashMap<Region, bool> = HashMap::new();
        // The executions of each region: a constant, factors, and the number of enclosing loops with guessed
        // trip counts.
        let mut runs: HashMap<Region, (u64, Vec<Value>, u32)> =
            HashMap::from([(self.region, (1, Vec::new(), 0))]);
        for op in self.body.walk(self.region) {
            let Some((times, factors, guesses)) =
                self.body.parent(op).and_then(|r| runs.get(&r)).cloned()
            else {
                continue;
            };
            match self.body.kind(op) {
                OpKind::Call(_) | OpKind::Invoke(_) => self.call(op, times, &factors, guesses),
                kind => {
                    self.work.calls |= queries_team(kind);
                    let region = self.body.parent(op).unwrap_or(self.region);
                    let is_straight = straight.entry(region).or_insert_with(|| {
                        self.costs.is_vectorizable(self.unit, self.body, region)
                    });
                    let halves = match *is_straight && self.is_narrow(op) {
                        true => 1,
                        false => UNITS_PER_OP,
                    };
                    let is_sum = matches!(kind, OpKind::AtomicRmw(RmwOp::FAdd, _));
                    let cost = match self.added.filter(|_| is_sum) {
                        Some(added) => added,
                        None if self.body.ops[op].flags.has(Flags::ATOMIC_ACROSS_ITERATIONS) => {
                            self.between
                        }
                        None => op_cost(kind),
                    };
                    let cost = halves.saturating_mul(cost);
                    self.add_halves(times.saturating_mul(cost), &factors);
                }
            }
            let regions = self.body.op_regions(op);
            if regions.is_empty() {
                continue;
            }
            let trips = self.trip_count(op);
            for &inner in regions {
                let (mut times, mut factors) = (times, factors.clone());
                let is_guessed = self.multiply_by_trip_count(&mut times, &mut factors, trips);
                let guesses = match self.body.kind(op) {
                    OpKind::Loop { .. } => guesses + UNBOUNDED_DEPTH,
                    _ => guesses + u32::from(is_guessed),
                };
                self.guesses = self.guesses.max(guesses);
                runs.insert(inner, (times, factors, guesses));
            }
        }
    }

    /// Returns true if `op` works on 32 bits or less.
    fn is_narrow(&self, op: Op) -> bool {
        let body = self.body;
        let value = match body.kind(op) {
            OpKind::Store(_) | OpKind::ICmp(_) | OpKind::FCmp(_) => Some(body.operand(op, 0)),
            _ => body.results(op).first().copied(),
        };
        let types = &self.unit.types;
        let bits = value.and_then(|value| {
            let ty = types.scalar(body.ty(value));
            let float = types.float_kind(ty).map(|kind| kind.bits());
            types.int_bits(ty).or(float)
        });
        bits.is_some_and(|bits| bits <= NARROW_BITS)
    }

    fn add(&mut self, cost: u64, factors: &[Value]) {
        self.add_halves(cost.saturating_mul(UNITS_PER_OP), factors);
    }

    fn add_halves(&mut self, cost: u64, factors: &[Value]) {
        let work = &mut self.work;
        match work.terms.iter_mut().find(|(known, _)| known == factors) {
            _ if factors.is_empty() => work.fixed = work.fixed.saturating_add(cost),
            Some((_, sum)) => *sum = sum.saturating_add(cost),
            None => work.terms.push((factors.to_vec(), cost)),
        }
    }

    /// Multiplies `times` and `factors` by a trip count; returns true if the trip count is a guess.
    fn multiply_by_trip_count(
        &mut self,
        times: &mut u64,
        factors: &mut Vec<Value>,
        trips: TripCount,
    ) -> bool {
        match trips {
            TripCount::Constant(n) => *times = times.saturating_mul(n),
            TripCount::Symbolic(value) if factors.len() < FACTORS_MAX => factors.push(value),
            TripCount::Symbolic(_) | TripCount::Unknown => {
                self.guessed = true;
                *times = times.saturating_mul(TRIPS_IF_UNKNOWN);
                return matches!(trips, TripCount::Unknown);
            }
        }
        false
    }

    fn call(&mut self, op: Op, times: u64, factors: &[Value], guesses: u32) {
        let callee = self.unit.callee(self.body, op);
        let known = callee.and_then(|func| self.unit.known(func));
        let Some(number) = library_call_work(self.unit, self.body, op, known) else {
            return self.program_call(op, callee, times, factors, guesses);
        };
        self.add(times.saturating_mul(number), factors);
    }

    /// Adds a call of a program function or of unknown code.
    fn program_call(
        &mut self,
        op: Op,
        callee: Option<FuncId>,
        times: u64,
        factors: &[Value],
        guesses: u32,
    ) {
        let costs = self.costs;
        let other = CallCost::of_unsummarized(self.unit, callee);
        let cost = callee.and_then(|func| costs.functions.get(&func));
        let cost = cost.unwrap_or(&other);
        self.work.calls |= cost.calls;
        self.guesses = self.guesses.max(guesses + cost.guess_depth);
        // Code before the program's end does not make an iteration long.
        let fixed = match self.is_noreturn_region(op) {
            true => cost.fixed.min(CALL_WORK),
            false => cost.fixed,
        };
        self.add(times.saturating_mul(fixed), factors);
        let args = self.unit.call_args(self.body, op);
        for (params, cost) in &cost.terms {
            let known = |param: &usize| args.get(*param).map(|arg| self.count_before_region(*arg));
            let trips: Vec<TripCount> = params.iter().filter_map(known).collect();
            let unknown = |trips: &TripCount| matches!(trips, TripCount::Unknown);
            if trips.len() < params.len() || trips.iter().any(unknown) {
                self.guessed = true;
                self.guesses = self.guesses.max(guesses + 1);
                self.add(times.saturating_mul(CALL_WORK), factors);
                continue;
            }
            let (mut times, mut factors) = (times, factors.to_vec());
            for trips in trips {
                self.multiply_by_trip_count(&mut times, &mut factors, trips);
            }
            self.add(times.saturating_mul(*cost), &factors);
        }
    }

    /// Returns true if no code runs after the region of `op`.
    fn is_noreturn_region(&self, op: Op) -> bool {
        let end = self.body.parent(op).and_then(|r| self.body.last(r));
        end.is_some_and(|end| matches!(self.body.kind(end), OpKind::Unreachable))
    }

    /// Returns the executions of the regions of `op` per execution of `op`.
    fn trip_count(&self, op: Op) -> TripCount {
        match self.body.kind(op) {
            OpKind::For { trip_max } => {
                match (self.count_before_region(self.body.operand(op, 0)), trip_max) {
                    (TripCount::Unknown, Some(most)) => TripCount::Constant(*most),
                    (trips, _) => trips,
                }
            }
            OpKind::ShareFor { .. } | OpKind::ParFor { .. } => {
                self.count_before_region(self.body.operand(op, 0))
            }
            OpKind::Loop { .. } => TripCount::Unknown,
            _ => TripCount::Constant(1),
        }
    }

    /// Returns a count known before the region. Width changes, added constants and a select between two values
    /// are looked through to a parameter.
    fn count_before_region(&self, count: Value) -> TripCount {
        let (unit, body) = (self.unit, self.body);
        if let Some(n) = body.as_int(unit, count) {
            return u64::try_from(n).map_or(TripCount::Unknown, TripCount::Constant);
        }
        let is_known = |value: Value| {
            !body.is_defined_in(value, self.region)
                || self.region == body.root() && body.params().contains(&value)
        };
        let mut count = count;
        loop {
            if is_known(count) {
                return TripCount::Symbolic(count);
            }
            let Some(op) = body.def_op(count) else {
                return TripCount::Unknown;
            };
            let constant = |i| body.as_const(body.operand(op, i)).is_some();
            count = match body.kind(op) {
                OpKind::Cast(CastOp::ZExt | CastOp::SExt | CastOp::Trunc) => body.operand(op, 0),
                OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) if constant(1) => body.operand(op, 0),
                // Selects the known one of two alternatives; two constants, as for bounds in the wrong order,
                // are no information.
                OpKind::Select => {
                    let two = [2, 1].map(|i| body.operand(op, i));
                    let mut ways = two.into_iter().filter(|way| body.as_const(*way).is_none());
                    match (ways.next(), ways.next()) {
                        (Some(way), other) if is_known(way) || other.is_none() => way,
                        (_, Some(way)) => way,
                        _ => return TripCount::Unknown,
                    }
                }
                _ => return TripCount::Unknown,
            };
        }
    }
}

/// Executions of an op's regions per execution of the op.
#[derive(Clone, Copy)]
enum TripCount {
    /// A number known at compile time.
    Constant(u64),
    /// A value known before the region.
    Symbolic(Value),
    Unknown,
}

/// Returns the cost of an op without calls.
fn op_cost(kind: &OpKind) -> u64 {
    match kind {
        OpKind::Binary(op) if op.is_slow() => DIVISION_WORK,
        kind if kind.is_terminator() => 0,
        OpKind::Cast(_) | OpKind::Addr { .. } | OpKind::Alloca(_) | OpKind::If => 0,
        _ => 1,
    }
}

/// Returns true if `op` queries the runtime for thread number or team size.
fn queries_team(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::ShareFor { .. } | OpKind::Single { .. } | OpKind::Barrier(_)
    )
}

impl IterationWork {
    /// Returns the work with `open` code counted as unbounded.
    pub(crate) fn with_unbounded(mut self) -> IterationWork {
        if self.unbounded {
            self.fixed = self.fixed.max(UNBOUNDED_WORK);
        }
        self
    }

    /// Returns the work of an iteration, with unknown values estimated.
    fn estimate(&self) -> u64 {
        let terms = self.terms.iter().map(|(factors, cost)| {
            let times = TRIPS_IF_UNKNOWN.saturating_pow(factors.len() as u32);
            times.saturating_mul(*cost)
        });
        terms.fold(self.fixed, u64::saturating_add)
    }

    /// Emits the work of `trips` iterations and of one iteration (at least 1). Large numbers saturate far above
    /// every threshold, hence nothing overflows.
    pub(crate) fn values(&self, b: &mut Builder<'_>, trips: Value) -> (Value, Value) {
        let number = |n: u64| i64::try_from(n.clamp(1, FACTOR_MAX)).unwrap_or(1);
        let mut sum = b.i64(number(self.fixed));
        for (factors, cost) in &self.terms {
            let mut product = b.i64(number(*cost));
            for &factor in factors {
                let factor = gradus_edit::to_i64(b, factor);
                let factor = at_most(b, factor, FACTOR_MAX);
                product = b.mul(product, factor);
            }
            sum = b.add(sum, product);
        }
        let one = at_most(b, sum, ITERATION_WORK_MAX);
        let trips = at_most(b, trips, TRIPS_MAX);
        let all = b.mul(trips, one);
        (all, one)
    }
}

fn at_most(b: &mut Builder<'_>, value: Value, limit: u64) -> Value {
    let known = b.body.as_int(b.unit, value);
    let known = known.and_then(|n| u64::try_from(n).ok());
    let limit = b.i64(i64::try_from(known.unwrap_or(limit).min(limit)).unwrap_or(i64::MAX));
    if known.is_some() {
        return limit;
    }
    let less = b.icmp(IntPredicate::Ult, value, limit);
    b.select(less, value, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::library_calls::{ALLOCATION_WORK, MATH_WORK};
    use gradus_ir::{Symbol, parse};

    /// Loops over a function of each kind.
    const TEXT: &str = "
        declare @elsewhere(i64) -> i64
        declare @read(i64) -> i64
        declare @rand(i64) -> i64
        declare @pow(f64, f64) -> f64
        declare @powf(f32, f32) -> f32
        declare @llvm.powi.f64.i32(f64, i32) -> f64
        declare @bzero(ptr, i64) -> void
        declare @malloc(i64) -> ptr
        declare @llvm.umin.i64(i64, i64) -> i64
        func @small(%x: i64) -> i64 { %y = mul %x, %x %z = add %y, 1 return %z }
        func @narrow(%x: i64) -> i64 {
          %a = trunc %x -> i32 %b = mul %a, %a %c = add %b, %a %d = zext %c -> i64 return %d }
        func @branch(%x: i64) -> i64 {
          %a = trunc %x -> i32 %t = icmp ult %a, i32 7
          %b = if %t -> i32 { %c = mul %a, %a yield %c } else { %d = add %a, %a yield %d }
          %e = zext %b -> i64 return %e }
        func @twice(%x: i64) -> i64 {
          %a = call @small(%x) %b = call @small(%a) return %b }
        func @sum(%m: i64) -> i64 {
          %s = for %k < %m iter(%t = 0) { %u = add %t, %k yield %u }
          return %s }
        func @squares(%m: i64) -> i64 { %k = mul %m, %m %s = call @sum(%k) return %s }
        func @while(%m: i64) -> i64 {
          %t = icmp slt 3, %m %d = sub %m, 3 %n = select %t, %d, 0
          %s = for %k < %n iter(%a = 0) { %u = add %a, %k yield %u }
          return %s }
        func @least(%m: i64, %x: i64) -> i64 {
          %y = mul %x, %x %t = icmp slt %y, %m %n = select %t, %y, %m
          %s = for %k < %n iter(%a = 0) { %u = add %a, %k yield %u }
          return %s }
        func @calls_elsewhere(%x: i64) -> i64 { %y = call @elsewhere(%x) return %y }
        func @ends(%x: i64) -> i64 {
          %t = icmp slt %x, 0
          if %t { %z = call @elsewhere(%x) unreachable } else { yield }
          return %x }
        func @until(%x: i64) -> i64 {
          %s = loop iter(%a = %x) -> i64 { %t = icmp ult %a, 9 %b = add %a, 1 repeat %t, %b, %b } return %s }
        func @deep(%x: i64) -> i64 { %y = sub %x, 1 %z = call @deep(%y) return %z }
        func @f(%n: i64, %out: ptr) {
          par.for %i < %n { CALL yield }
          return }";

    /// Returns the work of an iteration with `call` in the loop of `f`. The second number is the multiple of
    /// `n`.
    fn work(call: &str) -> (u64, Option<u64>, bool) {
        let (work, n) = work_of(call);
        let term = work.terms.iter().find(|(factors, _)| *factors == [n]);
        (work.fixed, term.map(|(_, cost)| *cost), work.calls)
    }

    fn work_of(call: &str) -> (IterationWork, Value) {
        let call = match call.starts_with("bzero") {
            true => format!("call @{call}"),
            false => format!("%v = call @{call} store %v, %out"),
        };
        let text = TEXT.replace("CALL", &call);
        let unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let all: Vec<FuncId> = unit.functions.ids().collect();
        let costs = CallCosts::of(&unit, &CallGraph::of(&unit, &all));
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let is_loop = |op: &Op| matches!(body.kind(*op), OpKind::ParFor { .. });
        let op = body.walk(body.root()).find(is_loop).expect("the loop");
        let work = costs.region(&unit, body, body.op_regions(op)[0]);
        (work, body.params()[0])
    }

    #[test]
    fn call_costs_its_body() {
        assert_eq!(work("small(%i)"), (3, None, false));
        assert_eq!(work("twice(%i)"), (5, None, false));
        // The loop itself, and an addition per iteration.
        assert_eq!(work("sum(%n)"), (2, Some(1), false));
        assert_eq!(work("sum(10)"), (12, None, false));
        // The argument minus three; at most the argument.
        assert_eq!(work("while(%n)"), (5, Some(1), false));
        assert_eq!(work("least(%n, %i)"), (5, Some(1), false));
        assert_eq!(work("pow(3.0, 2.0)"), (2, None, false));
        assert_eq!(work("pow(3.0, 1.5)"), (1 + MATH_WORK, None, false));
        assert_eq!(work("powf(f32 3.0, f32 2.0)"), (2, None, false));
        assert_eq!(work("llvm.powi.f64.i32(3.0, i32 2)"), (2, None, false));
        assert_eq!(work("bzero(%out, 64)"), (1 + 64 / 16, None, false));
        assert_eq!(work("bzero(%out, %i)"), (CALL_WORK, None, false));
        assert_eq!(work("malloc(%i)"), (1 + ALLOCATION_WORK, None, false));
        assert_eq!(work("llvm.umin.i64(%i, 7)"), (2, None, false));
    }

    /// Two operations on 32 bits count as one if vectorisable.
    #[test]
    fn narrow_vectorizable_ops_cost_half() {
        assert_eq!(work("narrow(%i)"), (1 + 1, None, false));
        // The comparison is not in straight code, but the arms are.
        assert_eq!(work("branch(%i)"), (1 + 1 + 1, None, false));
    }

    /// Loops with tiny iterations fork if long, and no estimate overflows.
    #[test]
    fn long_loops_fork() {
        assert!(TRIPS_MAX > crate::Options::default().small_work);
        assert!(
            TRIPS_MAX
                .checked_mul(ITERATION_WORK_MAX)
                .is_some_and(|all| i64::try_from(all).is_ok())
        );
    }

    #[test]
    fn unknown_trip_counts_are_large() {
        assert_eq!(work("deep(%i)"), (CALL_WORK + 1, None, false));
        // The trip count depends on the iteration, or on more than an argument.
        assert_eq!(work("sum(%i)"), (2 + CALL_WORK, None, false));
        assert_eq!(work("squares(%n)"), (CALL_WORK + 1, None, false));
    }

    /// Recursion and while loops, but not a single loop over a row.
    #[test]
    fn recursion_and_while_are_unbounded() {
        for (call, open) in [
            ("small(%i)", false),
            ("sum(%n)", false),
            ("sum(%i)", false),
            ("until(%i)", true),
            ("deep(%i)", true),
        ] {
            let (work, _) = work_of(call);
            let fixed = work.fixed;
            let counted = work.with_unbounded().fixed;
            assert_eq!(counted, if open { UNBOUNDED_WORK } else { fixed }, "{call}");
        }
    }

    /// Code of another file, a function pointer, and calls that wait for a disk or another thread.
    #[test]
    fn two_unknown_calls_fork() {
        assert_eq!(work("elsewhere(%i)"), (UNBOUNDED_WORK + 1, None, true));
        assert_eq!(
            work("calls_elsewhere(%i)"),
            (UNBOUNDED_WORK + 1, None, true)
        );
        assert_eq!(work("read(%i)"), (UNBOUNDED_WORK + 1, None, true));
        assert_eq!(work("ends(%i)"), (CALL_WORK + 2, None, true));
        assert_eq!(work("rand(%i)"), (CALL_WORK + 1, None, true));
        assert!(2 * UNBOUNDED_WORK > crate::Options::default().small_work);
        assert!(UNBOUNDED_WORK < FACTOR_MAX);
    }
}
