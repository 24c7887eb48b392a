//! Control edges on generated programs: the interpreter takes no other transition between regions, and edges set
//! all results and region parameters.

use gradus_interp::{Machine, Options};
use gradus_ir::{Body, ControlEdge, Op, OpKind, Point, Unit, Value, parse};
use gradus_testkit::{
    Call, Style, fork_join_program, fork_join_unit, kernel_program, program, run_call,
    wide_program, wide_unit,
};
use std::collections::BTreeSet;

/// Calls of `@f` in sequential programs.
const CALLS: &[&str] = &[
    "@f(n = 5, x = [0.5, -1.0, 0.25, 2.0, 0.0, 1.5, -0.75, 0.125], s = 0.3)",
    "@f(n = -3, x = [1.5, 1.0, -0.25, 0.5, 3.0, -1.5, 0.75, 0.625], s = -1.1)",
];

fn read(text: &str) -> Unit {
    parse(text, "program").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the number of parameters of a region that the op computes.
fn computed_params(body: &Body, op: Op, edge: &ControlEdge<'_>) -> usize {
    match (body.kind(op), edge.to) {
        (OpKind::For { .. } | OpKind::ShareFor { .. }, _) => 1,
        (OpKind::ParFor { dims, .. }, Point::RegionEntry(region))
            if body.op_regions(op)[0] == region =>
        {
            *dims as usize
        }
        (OpKind::Spmd { dims, .. }, _) => 2 * *dims as usize,
        (OpKind::Invoke(_), Point::RegionEntry(region)) if body.op_regions(op)[0] == region => {
            body.region_params(region).len()
        }
        _ => 0,
    }
}

/// Checks the edges of all ops of a unit. Returns the number of edges.
fn check_targets(unit: &Unit) -> usize {
    let mut count = 0;
    let bodies = unit.functions.iter().filter_map(|(_, f)| f.body.as_deref());
    for body in bodies {
        for op in body.walk(body.root()) {
            for edge in body.control_edges(op) {
                count += 1;
                let (expected, computed) = match edge.to {
                    Point::RegionEntry(region) => {
                        (body.region_params(region), computed_params(body, op, &edge))
                    }
                    Point::OpExit(op) => (body.results(op), 0),
                    Point::OpEntry(_) | Point::RegionEnd(_) => panic!("an edge to {:?}", edge.to),
                    Point::Return | Point::Unwind => (&[][..], 0),
                };
                let expected: BTreeSet<Value> = expected[computed..].iter().copied().collect();
                let flows = edge.flows.iter().flat_map(|flow| flow.pairs(body));
                let found: BTreeSet<Value> = flows.map(|(_, target)| target).collect();
                assert_eq!(found, expected, "{:?} of {:?}", edge, body.kind(op));
            }
        }
    }
    count
}

fn traced(random_order: Option<u64>) -> Options {
    Options {
        check_edges: true,
        random_order,
        ..Options::default()
    }
}

#[test]
fn sequential_programs_follow_the_edges() {
    let mut edges = 0;
    for seed in 0..300 {
        let style = Style {
            statements: 15 + seed as u32 % 4 * 15,
            depth: 2 + seed as u32 % 3,
            promises: seed % 2 == 1,
            ..Style::default()
        };
        let text = program(seed, style);
        let unit = read(&text);
        edges += check_targets(&unit);
        for call in CALLS {
            let call = Call::parse(call).expect("a call");
            let (_, plain) = run_call(&unit, &call, Options::default()).expect("it is called");
            let (_, checked) = run_call(&unit, &call, traced(None)).expect("it is called");
            assert_eq!(plain.outcome, checked.outcome, "seed {seed}\n{text}");
        }
    }
    assert!(edges > 10_000, "{edges}");
    let programs: Vec<_> = (0..100).map(|seed| wide_program(seed)).collect();
    assert!(check_targets(&wide_unit(&programs).expect("a unit")) > 3_000);
}

#[test]
fn parallel_programs_follow_the_edges() {
    let mut edges = 0;
    for batch in 0..10u64 {
        let programs: Vec<_> = (batch * 20..(batch + 1) * 20)
            .map(fork_join_program)
            .collect();
        let unit = fork_join_unit(&programs).expect("a unit");
        edges += check_targets(&unit);
        for program in &programs {
            let call = |options| Machine::with_options(&unit, options).call(&program.function, &[]);
            let plain = call(Options::default());
            for order in [None, Some(7), Some(12_345)] {
                assert_eq!(call(traced(order)), plain, "{}", program.text);
            }
        }
    }
    for seed in 0..100 {
        let text = kernel_program(seed, 12 + (seed % 4) as u32 * 8).text;
        let unit = read(&text);
        edges += check_targets(&unit);
        let plain = Machine::new(&unit).call("f", &[]);
        for order in [None, Some(7)] {
            let checked = Machine::with_options(&unit, traced(order)).call("f", &[]);
            assert_eq!(checked, plain, "seed {seed}\n{text}");
        }
    }
    assert!(edges > 5_000, "{edges}");
}
