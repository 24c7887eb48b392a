//! Tests of the driver of dataflow analyses: both directions against an enumeration of paths, and deep nests.

use super::dataflow::{Dataflow, Direction, Lattice, Solution};
use gradus_ir::{Body, Op, Point, Unit, parse, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// The ops on all paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnAllPaths(BTreeSet<Op>);

impl Lattice for OnAllPaths {
    fn join(&mut self, other: &OnAllPaths) -> bool {
        let count = self.0.len();
        self.0.retain(|op| other.0.contains(op));
        self.0.len() < count
    }
}

struct Before;
struct After;

impl Dataflow for Before {
    type State = OnAllPaths;
    const DIRECTION: Direction = Direction::Forward;
    fn boundary(&self) -> OnAllPaths {
        OnAllPaths(BTreeSet::new())
    }
    fn transfer(&self, op: Op, state: &mut OnAllPaths) {
        state.0.insert(op);
    }
}

impl Dataflow for After {
    type State = OnAllPaths;
    const DIRECTION: Direction = Direction::Backward;
    fn boundary(&self) -> OnAllPaths {
        OnAllPaths(BTreeSet::new())
    }
    fn transfer(&self, op: Op, state: &mut OnAllPaths) {
        state.0.insert(op);
    }
}

/// Returns the ops that each op visits the analysis with.
fn solved<A: Dataflow<State = OnAllPaths>>(
    body: &Body,
    analysis: &A,
) -> BTreeMap<Op, BTreeSet<Op>> {
    let mut found = BTreeMap::new();
    let solution = Solution::of(body, body.root(), analysis);
    let Ok(()) = solution.visit(|op, state| {
        found.insert(op, state.0.clone());
        Ok::<(), Infallible>(())
    });
    found
}

/// The number of times that a path may take one edge.
const REPEATS: usize = 2;

/// Enumerates all paths from the start of the body to an end, as lists of ops.
fn paths(body: &Body) -> Vec<Vec<Op>> {
    let mut found = Vec::new();
    let mut open = vec![(
        Point::RegionEntry(body.root()),
        Vec::new(),
        BTreeMap::<(Point, Point), usize>::new(),
    )];
    while let Some((mut point, mut path, taken)) = open.pop() {
        // Control runs through ops until a point with edges.
        let region = match point {
            Point::RegionEntry(region) => region,
            Point::OpExit(op) => body.parent(op).expect("a region"),
            _ => {
                found.push(path);
                continue;
            }
        };
        let mut at = match point {
            Point::OpExit(op) => body.next(op),
            _ => body.first(region),
        };
        point = Point::RegionEnd(region);
        while let Some(op) = at {
            path.push(op);
            if !body.op_regions(op).is_empty() {
                point = Point::OpEntry(op);
                break;
            }
            at = body.next(op);
        }
        let edges = body.edges_from(point);
        if edges.is_empty() {
            found.push(path.clone());
        }
        for edge in edges {
            let mut taken = taken.clone();
            let count = taken.entry((edge.from, edge.to)).or_default();
            *count += 1;
            if *count <= REPEATS {
                open.push((edge.to, path.clone(), taken));
            }
        }
    }
    found
}

/// Returns the ops that precede each op on all paths, or follow each op on all paths.
fn enumerated(body: &Body, reverse: bool) -> BTreeMap<Op, BTreeSet<Op>> {
    let mut found: BTreeMap<Op, BTreeSet<Op>> = BTreeMap::new();
    for mut path in paths(body) {
        if reverse {
            path.reverse();
        }
        let mut before = BTreeSet::new();
        for op in path {
            let known = found.entry(op).or_insert_with(|| before.clone());
            known.retain(|other| before.contains(other));
            before.insert(op);
        }
    }
    found
}

fn body_of(text: &str) -> Unit {
    let unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    assert_eq!(verify(&unit), [], "{text}");
    unit
}

const PROGRAMS: &[&str] = &[
    "if %c { %a = add %n, 1 yield } else { if %c { unreachable } else { %b = add %n, 2 yield } yield }",
    "for %i < %n { if %c { %a = add %i, 1 yield } else { yield } %b = add %i, 2 yield }",
    "loop { %a = add %n, 1 for %i < %n { %b = add %i, 1 yield } repeat %c }",
    "%r = switch %n -> i64 case 1 { yield 1 } case 2 { %a = add %n, 2 yield %a } default { yield 5 }
     loop { if %c { unreachable } else { yield } repeat %c }",
    "%s = par.for %i < %n reduce(custom %n) { %a = add %i, 1 yield %a }
       { |%x: i64, %y: i64| %b = add %x, %y yield %b }",
    "scope { spawn { %a = add %n, 1 yield } sync yield }",
    "spmd team %n { |%q: i64, %m: i64| %a = add %q, 1
       %r = single copy -> i64 { %b = add %q, 2 yield %b }
       %t = critical \"k\" -> i64 { %d = add %q, 3 yield %d }
       yield }",
];

#[test]
fn states_equal_the_states_of_all_paths() {
    for code in PROGRAMS {
        let text =
            format!("func @f(%n: i64, %c: i1) {{ %z = add %n, 9 {code} %e = add %n, 8 return }}");
        let unit = body_of(&text);
        let f = unit.function("f").expect("it is there");
        let body = unit.functions[f].body.as_deref().expect("it has code");
        assert_eq!(solved(body, &Before), enumerated(body, false), "{code}");
        assert_eq!(solved(body, &After), enumerated(body, true), "{code}");
    }
}

/// A part of a body is one execution: the back edge of the part's own loop is not followed.
#[test]
fn a_region_is_analysed_for_one_execution() {
    let text = "func @f(%n: i64) { for %i < %n { %a = add %i, 1 %b = add %i, 2 yield } return }";
    let unit = body_of(text);
    let f = unit.function("f").expect("it is there");
    let body = unit.functions[f].body.as_deref().expect("it has code");
    let lp = body.first(body.root()).expect("a loop");
    let region = body.op_regions(lp)[0];
    let solution = Solution::of(body, region, &Before);
    let mut seen = Vec::new();
    let Ok(()) = solution.visit(|op, state| {
        seen.push((op, state.0.len()));
        Ok::<(), Infallible>(())
    });
    let ops: Vec<Op> = body.ops_in(region).collect();
    assert_eq!(seen, [(ops[0], 0), (ops[1], 1), (ops[2], 2)]);
}

/// Counts the transfers of an analysis with two states.
struct Reached(std::cell::Cell<usize>);

#[derive(Clone, Debug)]
struct Twice(bool);

impl Lattice for Twice {
    fn join(&mut self, other: &Twice) -> bool {
        let changed = other.0 && !self.0;
        self.0 |= other.0;
        changed
    }
}

impl Dataflow for Reached {
    type State = Twice;
    const DIRECTION: Direction = Direction::Forward;
    fn boundary(&self) -> Twice {
        Twice(false)
    }
    fn transfer(&self, _op: Op, state: &mut Twice) {
        self.0.set(self.0.get() + 1);
        state.0 = true;
    }
}

/// Loops 20,000 deep: no recursion, and a number of transfers linear in the number of ops.
#[test]
fn deep_nests_are_solved() {
    const DEPTH: usize = 20_000;
    let open = "for %i < %n { ".repeat(DEPTH).replace("%i", "%_");
    let mut numbered = String::new();
    for (number, part) in open.split("%_").enumerate() {
        if number > 0 {
            numbered.push_str(&format!("%i{number}"));
        }
        numbered.push_str(part);
    }
    let text = format!(
        "func @f(%n: i64) {{ {numbered} {} return }}",
        "yield } ".repeat(DEPTH)
    );
    let unit = body_of(&text);
    let f = unit.function("f").expect("it is there");
    let body = unit.functions[f].body.as_deref().expect("it has code");
    let analysis = Reached(std::cell::Cell::new(0));
    let _ = Solution::of(body, body.root(), &analysis);
    let ops = 2 * DEPTH + 1;
    assert!(
        (ops..=3 * ops).contains(&analysis.0.get()),
        "{} transfers of {ops} ops",
        analysis.0.get()
    );
}
