//! Tests of control edges: the edges of each region op, compared with lists written by hand.

use crate::{Body, ControlEdge, Op, Point, Transfer, Unit, Use, Value, parse, verify};

/// Parses a function `@f` and passes it to `check`.
fn with_body(code: &str, check: impl FnOnce(&Unit, &Body)) {
    let text = format!(
        "declare @h(i64) -> i64
         func @f(%n: i64, %k: i64, %c: i1) {{ {code} return }}"
    );
    let unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let f = unit.function("f").expect("it is there");
    let body = unit.functions[f].body.as_deref().expect("it has code");
    assert_eq!(verify(&unit), []);
    check(&unit, body);
}

fn shown_value(unit: &Unit, body: &Body, value: Value) -> String {
    match body.as_int(unit, value) {
        Some(n) => n.to_string(),
        None => body.name(value).unwrap_or("?").to_string(),
    }
}

fn shown_point(body: &Body, op: Op, point: Point) -> String {
    let number = |region| {
        let regions = body.op_regions(op);
        regions.iter().position(|r| *r == region).expect("its own")
    };
    match point {
        Point::OpEntry(own) | Point::OpExit(own) if own != op => panic!("another op"),
        Point::OpEntry(_) => "in".into(),
        Point::OpExit(_) => "out".into(),
        Point::RegionEntry(region) => format!("r{}", number(region)),
        Point::RegionEnd(region) => format!("e{}", number(region)),
        Point::Return => "return".into(),
        Point::Unwind => "unwind".into(),
    }
}

fn shown(unit: &Unit, body: &Body, op: Op, edge: &ControlEdge<'_>) -> String {
    let (from, to) = (
        shown_point(body, op, edge.from),
        shown_point(body, op, edge.to),
    );
    let mut text = format!("{from}-{to}");
    for flow in &edge.flows {
        let sign = match flow.transfer {
            Transfer::Copy => "=",
            Transfer::Combine => "+=",
            Transfer::Broadcast => "<=",
        };
        for (source, target) in flow.pairs(body) {
            let (source, target) = (
                shown_value(unit, body, source),
                shown_value(unit, body, target),
            );
            text.push_str(&format!(" {target}{sign}{source}"));
        }
    }
    text
}

/// Returns the edges of the first op with regions.
fn edges(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    with_body(code, |unit, body| {
        let mut ops = body.walk(body.root());
        let op = ops.find(|op| !body.op_regions(*op).is_empty());
        let op = op.expect("an op with regions");
        let list = body.control_edges(op);
        found = list.map(|edge| shown(unit, body, op, &edge)).collect();
    });
    found
}

#[test]
fn branches_run_one_region() {
    assert_eq!(
        edges("%r = if %c -> i64 { yield %n } else { yield 2 }"),
        ["in-r0", "in-r1", "e0-out r=n", "e1-out r=2"]
    );
    assert_eq!(
        edges("switch %n case 1 { yield } case 5 { unreachable } default { yield }"),
        ["in-r0", "in-r1", "in-r2", "e0-out", "e2-out"]
    );
    assert_eq!(
        edges(
            "%r = invoke @h(%n) -> i64 { |%v: i64| yield %v } unwind {
               %e = landingpad cleanup -> {ptr, i32} resume %e }"
        ),
        ["in-r0", "in-r1", "e0-out r=v", "e1-unwind"]
    );
}

#[test]
fn loops_carry_values() {
    assert_eq!(
        edges("%r = loop iter(%a = %n, %b = %k) -> i64 { %d = add %a, 1 repeat %c, %d, %a, %b }"),
        ["in-r0 a=n b=k", "e0-r0 a=d b=a", "e0-out r=b"]
    );
    assert_eq!(
        edges("%r = for %i < %n iter(%a = %k) -> i64 { %d = add %a, %i yield %d }"),
        ["in-r0 a=k", "in-out r=k", "e0-r0 a=d", "e0-out r=d"]
    );
}

#[test]
fn parallel_loops_combine_contributions() {
    assert_eq!(
        edges("%s = par.for %i < %n reduce(add %k) { yield %i }"),
        ["in-r0", "in-out s=k", "e0-r0", "e0-out s+=k s+=i"]
    );
    assert_eq!(
        edges(
            "%s, %t, %u = par.for %i < %n reduce(custom 1, add 2, custom 3) {
               %x = add %i, 1 %y = add %i, 2 %z = add %i, 3 yield %x, %y, %z
             } { |%a: i64, %b: i64| %d = sub %a, %b yield %d }
               { |%e: i64, %f: i64| %g = mul %e, %f yield %g }"
        ),
        [
            "in-r0",
            "in-out s=1 t=2 u=3",
            "e0-r1 a=1 b=1 a=x b=x a=d b=d",
            "e1-r2 e=3 f=3 e=z f=z e=g f=g",
            "e2-r0",
            "e2-out s+=1 t+=2 u+=3 s+=x t+=y u+=z s=d u=g",
        ]
    );
}

#[test]
fn ranks_may_leave_regions_out() {
    assert_eq!(
        edges("spmd team %n { |%r: i64, %s: i64| yield }"),
        ["in-r0", "in-out", "e0-r0", "e0-out"]
    );
    assert_eq!(
        edges("share.for static %i < %n { yield }"),
        ["in-r0", "in-out", "e0-r0", "e0-out"]
    );
    assert_eq!(
        edges("%r = single %n -> i64 { yield 5 }"),
        ["in-r0", "in-out r=n", "e0-out r=5"]
    );
    assert_eq!(
        edges("%r = single copy -> i64 { yield %n }"),
        ["in-r0", "in-out r<=n", "e0-out r=n"]
    );
}

#[test]
fn tasks_and_locks() {
    assert_eq!(
        edges("%r = scope -> i64 { spawn { yield } yield %n }"),
        ["in-r0", "e0-out r=n"]
    );
    assert_eq!(
        edges("%r = critical \"a\" -> i64 { yield %n }"),
        ["in-r0", "e0-out r=n"]
    );
    with_body("scope { spawn { yield } yield }", |unit, body| {
        let mut ops = body.walk(body.root());
        let spawn = ops.nth(1).expect("a task");
        let list = body.control_edges(spawn);
        let list: Vec<String> = list.map(|e| shown(unit, body, spawn, &e)).collect();
        assert_eq!(list, ["in-r0", "in-out", "e0-out"]);
    });
}

#[test]
fn the_root_returns_and_leaf_ops_have_no_edges() {
    with_body("%a = add %n, 1", |_, body| {
        let ends = body.edges_from(Point::RegionEnd(body.root()));
        assert_eq!(ends.len(), 1);
        assert_eq!((ends[0].to, ends[0].flows.len()), (Point::Return, 0));
        let add = body.first(body.root()).expect("the addition");
        assert_eq!(body.control_edges(add).count(), 0);
    });
}

/// Flow targets by use equal the targets in the list of all edges.
#[test]
fn targets_of_uses_follow_the_edges() {
    let code = "
        %l = loop iter(%la = %n) -> i64 { %lb = add %la, 1 repeat %c, %lb, %la }
        %i = if %c -> i64 { yield %l } else { yield %n }
        %g, %g2 = for %j < %n iter(%x = %i, %y = %k) -> i64, i64 { yield %y, %x }
        %s, %t = par.for %p < %n reduce(custom %g, add 2) {
          yield %p, %n } { |%a: i64, %b: i64| %d = sub %a, %b yield %d }
        spmd team 4 { |%q: i64, %m: i64|
          %one = single copy -> i64 { yield %q }
          %own = single %one -> i64 { yield %m }
          yield }";
    with_body(code, |_, body| {
        let mut carried = 0;
        let ops: Vec<Op> = body.walk(body.root()).collect();
        for &op in &ops {
            for index in 0..body.operand_count(op) as u32 {
                let mut expected = Vec::new();
                for edge in ops.iter().flat_map(|at| body.control_edges(*at)) {
                    for flow in edge.flows.iter().filter(|flow| flow.op == op) {
                        let operands = flow.first_operand as u32..;
                        let targets = operands.zip(flow.targets);
                        expected.extend(targets.filter(|t| t.0 == index).map(|t| *t.1));
                    }
                }
                let mut found = body.flow_targets(Use { op, index }).to_vec();
                carried += found.len();
                expected.sort_unstable();
                expected.dedup();
                found.sort_unstable();
                assert_eq!(found, expected, "operand {index} of {:?}", body.kind(op));
            }
        }
        // loop 3, if 2, for 4 + 4, par.for initial 3 + 1 and yields 3 + 1 + 3, single 1 + 1 + 1.
        assert_eq!(carried, 27);
    });
}
