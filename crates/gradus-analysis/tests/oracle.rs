//! Compares the analyses with executions of random programs: no execution may contradict an analysis.

use crate::Program;
use crate::machine::{Datum, Event, EventKind, Iteration, Machine, Trace};
use crate::programs::{ProgramWriter, Rng};
use gradus_analysis::{
    AccessKind, AccessRanges, Alias, Availability, BaseValue, Bound, BoundId, Clobbers, Condition,
    ExitClobbers, MemoryAccess, Poly, Variance,
};
use gradus_ir::Value;
use std::collections::HashMap;

/// Evaluates a polynomial form in the integers.
fn evaluate_form(form: &Poly, env: &HashMap<Value, Datum>) -> Option<i128> {
    let mut sum = i128::from(form.constant);
    for (product, factor) in &form.terms {
        let mut part = i128::from(*factor);
        for atom in product {
            let Some(Datum::Int(n)) = env.get(atom) else {
                return None;
            };
            part *= i128::from(*n);
        }
        sum += part;
    }
    Some(sum)
}

/// Checks the form and the interval of every defined value.
fn check_value(alias: &Alias, value: Value, datum: Datum, env: &HashMap<Value, Datum>, text: &str) {
    let (unit, body) = (alias.unit, alias.body);
    match datum {
        Datum::Int(n) => {
            let (low, high) = alias.forms.intervals.of(unit, body, value);
            assert!(
                low <= n && n <= high,
                "{:?} = {n}\n{text}",
                body.name(value)
            );
            let form = alias.forms.of_integer(unit, body, value);
            let sum = evaluate_form(&form, env).expect("atoms are known");
            let same = if form.exact {
                sum == n.into()
            } else {
                sum as i64 == n
            };
            assert!(same, "{:?} = {n}, not {sum}\n{text}", body.name(value));
        }
        Datum::Ptr(object, at) => {
            let place = alias.forms.of_pointer(unit, body, value);
            let BaseValue::Value(root) = place.root else {
                return;
            };
            let sum = evaluate_form(&place.offset, env).expect("atoms are known") as i64;
            let start = env.get(&root).copied();
            let Some(Datum::Ptr(same, start)) = start else {
                panic!("{:?} starts at {start:?}\n{text}", body.name(value));
            };
            let fits = same == object && start.wrapping_add(sum) == at;
            assert!(fits, "{:?} is elsewhere\n{text}", body.name(value));
        }
        _ => {}
    }
}

struct Checked<'a> {
    program: &'a Program,
    alias: &'a Alias<'a>,
    clobbers: &'a Clobbers<'a>,
    trace: &'a Trace,
    args: [Datum; 5],
    text: &'a str,
}

impl Checked<'_> {
    fn access(&self, event: &Event) -> MemoryAccess {
        let kind = match event.kind {
            EventKind::Read => AccessKind::Read,
            EventKind::Write => AccessKind::Write,
            EventKind::Free => AccessKind::Free,
        };
        self.program.access(event.op, kind)
    }
    fn say(&self, what: &str, a: &Event, b: &Event) -> String {
        format!("{what}: {a:?} and {b:?}\n{}", self.text)
    }

    /// Checks that overlapping accesses may alias, and that modified memory is clobbered.
    fn accesses(&self) {
        let events = &self.trace.events;
        for (time, a) in events.iter().enumerate() {
            for b in &events[time + 1..] {
                if !a.meets(b) || (a.kind == EventKind::Read && b.kind == EventKind::Read) {
                    continue;
                }
                let (x, y) = (self.access(a), self.access(b));
                let any = self.alias.may_alias_any_iteration(&x, &y);
                assert!(any, "{}", self.say("any iteration", a, b));
                if same_iteration(a, b) {
                    assert!(self.alias.may_alias(&x, &y), "{}", self.say("alias", a, b));
                }
                if a.kind == EventKind::Read {
                    self.clobbered(a, b);
                }
                self.invariance(a, b);
            }
        }
    }

    fn clobbered(&self, read: &Event, later: &Event) {
        let fate = self.clobbers.fate(read.op);
        let seen = match later.kind {
            EventKind::Write => fate.written_by.is_some(),
            _ => fate.written_by.is_some() || fate.freed_by.contains(&later.op),
        };
        assert!(seen, "{}", self.say("fate", read, later));
    }

    /// Checks that no access overlaps a read during a loop in which the read is invariant.
    fn invariance(&self, a: &Event, b: &Event) {
        for (read, other) in [(a, b), (b, a)] {
            if read.kind != EventKind::Read {
                continue;
            }
            for (depth, (lp, _)) in read.iteration.iter().enumerate() {
                let run = &read.iteration[..depth];
                let inside = other.iteration.len() > depth
                    && other.iteration[..depth] == *run
                    && other.iteration[depth].0 == *lp;
                if inside {
                    let invariant = self.clobbers.invariant_in(read.op, *lp);
                    assert!(!invariant, "{}", self.say("invariant", read, other));
                }
            }
        }
    }

    /// Checks that a value is constant over the iterations of loops in which it does not vary.
    fn variance(&self, variance: &Variance) {
        for (&value, list) in &self.trace.values {
            let loops = variance.loops(value);
            let mut known: HashMap<Iteration, Datum> = HashMap::new();
            for (iteration, datum) in list {
                let key: Iteration = iteration
                    .iter()
                    .filter(|(lp, _)| loops.contains(lp))
                    .copied()
                    .collect();
                let first = *known.entry(key).or_insert(*datum);
                let name = self.alias.body.name(value);
                assert_eq!(first, *datum, "{name:?} varies\n{}", self.text);
            }
        }
    }

    /// Checks that accesses lie within the access range of their base pointer.
    fn extents(&self) {
        let body = self.alias.body;
        let entry = body.first(body.root()).expect("the body has ops");
        let known = Availability::new(self.clobbers);
        let extents = AccessRanges::of(&known, &self.program.effects, entry);
        let met = |condition: &Condition| {
            let (low, high) = condition.range;
            let number = |id| self.number(&extents, id);
            let (least, most) = condition.within;
            let within =
                |low: i128, high: i128| i128::from(least) <= low && high <= i128::from(most);
            matches!((number(low), number(high)), (Some(low), Some(high)) if within(low, high))
        };
        if !extents.conditions.iter().all(met) {
            return;
        }
        for event in self
            .trace
            .events
            .iter()
            .filter(|e| e.kind != EventKind::Free)
        {
            let root = self.root(event.pointer);
            let extent = extents.of_root(BaseValue::Value(root));
            let Some((low, high)) = extent.and_then(|e| e.range) else {
                continue;
            };
            let (low, high) = (self.number(&extents, low), self.number(&extents, high));
            let start = self.trace_of(root);
            if let (Some(low), Some(high), Some(Datum::Ptr(_, start))) = (low, high, start) {
                let (from, to) = (event.bytes.0 - start, event.bytes.1 - start);
                let inside = low <= i128::from(from) && i128::from(to) <= high;
                assert!(
                    inside,
                    "{from}..{to} not in {low}..{high}: {event:?}\n{}",
                    self.text
                );
            }
        }
    }
    fn root(&self, pointer: Value) -> Value {
        let place = self
            .alias
            .forms
            .of_pointer(self.alias.unit, self.alias.body, pointer);
        match place.root {
            BaseValue::Value(root) => root,
            BaseValue::Global(_) => pointer,
        }
    }
    fn trace_of(&self, value: Value) -> Option<Datum> {
        let params = self.alias.body.params();
        if let Some(number) = params.iter().position(|p| *p == value) {
            return Some(self.args[number]);
        }
        Some(self.trace.values.get(&value)?.first()?.1)
    }
    fn number(&self, extents: &AccessRanges, id: BoundId) -> Option<i128> {
        let of = |id: &BoundId| self.number(extents, *id);
        Some(match &extents.bounds[id.0 as usize] {
            Bound::Constant(n) => i128::from(*n),
            Bound::Signed(v) | Bound::Unsigned(v) => match self.trace_of(*v)? {
                Datum::Int(n) => i128::from(n),
                _ => return None,
            },
            Bound::Add(a, b) => of(a)? + of(b)?,
            Bound::Mul(a, b) => of(a)? * of(b)?,
            Bound::Min(a, b) => of(a)?.min(of(b)?),
            Bound::Max(a, b) => of(a)?.max(of(b)?),
        })
    }
}

fn same_iteration(a: &Event, b: &Event) -> bool {
    let pairs = a.iteration.iter().zip(&b.iteration);
    let mut common = pairs.take_while(|(x, y)| x.0 == y.0);
    common.all(|(x, y)| x.1 == y.1)
}

const ARGS: [Datum; 5] = [
    Datum::Ptr(0, 2048),
    Datum::Ptr(0, 2056),
    Datum::Int(3),
    Datum::Int(2),
    Datum::Int(-1),
];

/// Runs and checks the program of a seed. Returns true if the program ran to its end.
fn check_seed(seed: u64) -> bool {
    let apart = Rng(seed).below(2) == 0;
    let text = ProgramWriter::program(seed, apart);
    let program = Program::read(&text);
    let alias = program.alias();
    let mut args = ARGS;
    if apart {
        args[1] = Datum::Ptr(1, 2048);
    }
    let watch = |value: Value, datum: Datum, env: &HashMap<Value, Datum>| {
        check_value(&alias, value, datum, env, &text);
    };
    let Ok(trace) = Machine::run(&program, &args, 2, &watch) else {
        return false;
    };
    let clobbers = Clobbers::of(&alias, &program.effects, ExitClobbers::default());
    let checked = Checked {
        program: &program,
        alias: &alias,
        clobbers: &clobbers,
        trace: &trace,
        args,
        text: &text,
    };
    checked.accesses();
    checked.variance(&Variance::of(&clobbers, &program.effects));
    checked.extents();
    true
}

#[test]
fn executions_agree_with_analyses() {
    const PROGRAMS: u64 = 600;
    let done = (0..PROGRAMS).filter(|seed| check_seed(*seed)).count();
    assert!(
        done as u64 * 8 > PROGRAMS,
        "only {done} programs ran to their end"
    );
}
