//! Lowered programs preserve the results of parallel ops: compares the interpreter's serial run of the ops,
//! the serial projection, and runs on the pool, with every loop forked and with small loops serial.

use gradus_analysis::Analyses;
use gradus_interp::Machine;
use gradus_ir::{FuncId, OpKind, Unit, parse, print, verify};
use gradus_par::{Options, Target, ThreadCountAnswers, lower, project, restore};
use gradus_testkit::{Pool, options_with_eager_forks};

/// The name of a program with `single copy` in a team and in a nested team.
const NESTED_COPIES: &str =
    "what one rank of a nested team gives to its own team, and one of the outer team to all";

/// Programs: a name, and text with a function `@f() -> i64`.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "a loop that writes",
        "func @f() -> i64 {
           %x = alloca [1000 x i64], 1
           par.for %i < 1000 { %p = addr i64, %x, %i %v = mul %i, %i store %v, %p yield }
           %s = for %k < 1000 iter(%t = 0) {
             %q = addr i64, %x, %k %w = load %q -> i64 %u = add %t, %w yield %u }
           return %s }",
    ),
    (
        "two reductions over two dimensions",
        "func @f() -> i64 {
           %s, %m = par.for %i < 70, %j < 50 reduce(add 100, umax 0) {
             %x = mul %i, 10 %y = add %x, %j yield %y, %y }
           %t = mul %m, 10000 %r = add %s, %t return %r }",
    ),
    (
        "three dimensions, narrow indices",
        "func @f() -> i64 {
           %n = add i32 6, i32 1
           %s = par.for %i < i32 3, %j < %n, %k < i32 11 reduce(add 0) {
             %a = mul %i, i32 100 %b = mul %j, %k %c = add %a, %b %w = zext %c -> i64 yield %w }
           return %s }",
    ),
    (
        "a reduction of the program's own",
        "func @f() -> i64 {
           %s = par.for %i < 1000 reduce(custom 7) {
             %x = mul %i, 37 %y = urem %x, 101 yield %y
           } { |%a: i64, %b: i64| %c = icmp ugt %a, %b %m = select %c, %a, %b yield %m }
           return %s }",
    ),
    (
        "least and greatest numbers that the program compares for: bounds that cut, zeros of both signs, \
         what is no number",
        "func @value(%i: i64) -> f64 {
           %a = mul %i, 37 %b = urem %a, 101 %c = uitofp %b -> f64 %x = fsub %c, 50.0
           %z = urem %i, 11 %n = icmp eq %z, 0 %q = fsub %x, %x %nan = fdiv %q, %q
           %y = select %n, %nan, %x
           %k = urem %i, 2 %odd = icmp eq %k, 1 %zero = fcmp oeq %y, 0.0 %neg = and %odd, %zero
           %v = select %neg, -0.0, %y
           return %v }
         func @least(%start: f64, %trips: i64) -> i64 {
           %s = par.for %i < %trips reduce(custom %start) {
             %x = call @value(%i) %c = fcmp olt %x, -20.0 %v = select %c, %x, -20.0 yield %v
           } { |%t: f64, %v2: f64| %c2 = fcmp olt %v2, %t %m = select %c2, %v2, %t yield %m }
           %b = bitcast %s -> i64 return %b }
         func @greatest(%start: f64, %trips: i64) -> i64 {
           %s = par.for %i < %trips, %j < 3 reduce(custom %start) {
             %a = call @value(%i) %x = fmul %a, -0.0 %c = fcmp uge -1.0, %x %v = select %c, -1.0, %x yield %v
           } { |%t: f64, %v2: f64| %c2 = fcmp olt %t, %v2 %m = select %c2, %v2, %t yield %m }
           %b = bitcast %s -> i64 return %b }
         func @f() -> i64 {
           %n = fsub 1.0, 1.0 %nan = fdiv %n, %n
           %r = for %k < 5 iter(%sum = 0) {
             %trips = mul %k, 250
             %a = call @least(100.0, %trips) %b = call @least(-40.0, %trips) %c = call @least(%nan, %trips)
             %d = call @greatest(-5.0, %trips) %e = call @greatest(-0.0, %trips) %g = call @greatest(%nan, %trips)
             %s1 = add %sum, %a %t1 = mul %s1, 31 %s2 = add %t1, %b %t2 = mul %s2, 31 %s3 = add %t2, %c
             %t3 = mul %s3, 31 %s4 = add %t3, %d %t4 = mul %s4, 31 %s5 = add %t4, %e %t5 = mul %s5, 31
             %s6 = add %t5, %g yield %s6 }
           return %r }",
    ),
    (
        "loops in loops, with a private slot",
        "func @f() -> i64 {
           %n = add 30, 10
           %s = par.for %i < %n reduce(add 0) {
             %slot = alloca private i64, 1
             store %i, %slot
             %t = par.for %j < %i reduce(add 0) { %o = add %j, 1 yield %o }
             %b = load %slot -> i64
             %c = add %t, %b
             yield %c }
           return %s }",
    ),
    (
        "blocks with memory of their own",
        "func @f() -> i64 {
           %x = alloca [100 x i64], 1
           par.for sharing %i < 100 {
             %own = alloca private [8 x i64], 1
             for %t < 8 { %p = addr i64, %own, %t %v = mul %i, %t store %v, %p yield }
             %e = for %u < 8 iter(%a = 0) {
               %r = sub 7, %u %q = addr i64, %own, %r %w = load %q -> i64 %b = add %a, %w yield %b }
             %o = addr i64, %x, %i
             store %e, %o
             yield }
           %s = for %k < 100 iter(%t2 = 0) {
             %q2 = addr i64, %x, %k %w2 = load %q2 -> i64 %u2 = add %t2, %w2 yield %u2 }
           return %s }",
    ),
    (
        "blocks that count each other",
        "func @f() -> i64 {
           %x = alloca i64, 1
           store 0, %x
           par.for sharing %i < 100 {
             %old = atomicrmw add monotonic %x, %i
             fence seq_cst
             yield }
           %s = load %x -> i64
           return %s }",
    ),
    (
        "sums between iterations",
        "func @f() -> i64 {
           %x = alloca f64, 1
           store 0.0, %x
           par.for %i < 10000 {
             %v = sitofp %i -> f64
             %old = atomicrmw between fadd monotonic %x, %v
             yield }
           %s = load %x -> f64
           %r = fptosi %s -> i64
           return %r }",
    ),
    (
        "teams",
        "func @f() -> i64 {
           %x = alloca [170 x i64], 1
           for %k < 170 { %p = addr i64, %x, %k store 0, %p yield }
           spmd team 0 { |%r: i64, %n: i64|
             share.for static %i < 170 { %q = addr i64, %x, %i store %i, %q yield }
             share.for static chunked nowait %i2 < 170 chunk 3 {
               %q2 = addr i64, %x, %i2 %a = load %q2 -> i64 %b = add %a, 1 store %b, %q2 yield }
             barrier team
             share.for dynamic chunked %i3 < 170 chunk 2 {
               %j3 = sub 169, %i3
               %q3 = addr i64, %x, %j3 %a3 = load %q3 -> i64 %b3 = add %a3, 1 store %b3, %q3 yield }
             share.for guided %i4 < 170 {
               %q4 = addr i64, %x, %i4 %a4 = load %q4 -> i64 %b4 = add %a4, 1 store %b4, %q4 yield }
             single { %a5 = load %x -> i64 %b5 = add %a5, 100 store %b5, %x yield }
             critical \"c\" { %o = addr i64, %x, 1 %a6 = load %o -> i64 %b6 = or %a6, 4096 store %b6, %o yield }
             yield }
           %s = for %m < 170 iter(%t = 0) {
             %q7 = addr i64, %x, %m %v = load %q7 -> i64 %w = add %t, %v yield %w }
           return %s }",
    ),
    (
        "what one rank gives to all",
        "func @f() -> i64 {
           %x = alloca [64 x i64], 1
           for %k < 64 { %p = addr i64, %x, %k store 0, %p yield }
           spmd team 0 { |%r: i64, %n: i64|
             %a = single copy -> i64 { yield 41 }
             %b = single copy -> i64 { %c = add %a, 1 yield %c }
             %q = addr i64, %x, %r %d = sub %b, 42 store %d, %q
             single { %o = addr i64, %x, 63 store %b, %o yield }
             yield }
           %s = for %m < 64 iter(%t = 0) {
             %q7 = addr i64, %x, %m %v = load %q7 -> i64 %w = add %t, %v yield %w }
           return %s }",
    ),
    (
        NESTED_COPIES,
        "func @f() -> i64 {
           %x = alloca [64 x i64], 1
           for %k < 64 { %p = addr i64, %x, %k store 0, %p yield }
           spmd team 0 { |%r: i64, %n: i64|
             spmd team 1 { |%r2: i64, %n2: i64|
               %s2 = single copy -> i8 { yield i8 7 }
               %w2 = zext %s2 -> i64
               single { %o2 = addr i64, %x, 62 %u2 = atomicrmw or monotonic %o2, %w2 yield }
               yield }
             %a, %b, %c, %d, %e, %g = single copy -> i64, i64, i64, i64, i64, i64 {
               yield 1, 20, 300, 4000, 50000, 600000 }
             %ab = add %a, %b %abc = add %ab, %c %abcd = add %abc, %d %abcde = add %abcd, %e
             %all = add %abcde, %g
             %q = addr i64, %x, %r %off = sub %all, 654321 store %off, %q
             single { %o = addr i64, %x, 63 store %all, %o yield }
             yield }
           %s = for %m < 64 iter(%t = 0) {
             %q7 = addr i64, %x, %m %v = load %q7 -> i64 %w = add %t, %v yield %w }
           return %s }",
    ),
    (
        "tasks",
        "func @fib(%n: i64) -> i64 {
           %c = icmp ult %n, 2
           %r = if %c -> i64 { yield %n } else {
             %p = alloca i64, 1 %m = sub %n, 1 %k = sub %n, 2
             scope { spawn { %a = call @fib(%m) store %a, %p yield }
               %b = call @fib(%k) sync
               %d = load %p -> i64 %e = add %b, %d store %e, %p yield }
             %s = load %p -> i64 yield %s }
           return %r }
         func @f() -> i64 { %a = call @fib(18) return %a }",
    ),
    (
        "tasks that spawn, in a loop",
        "func @f() -> i64 {
           %x = alloca [64 x i64], 1
           scope {
             for %i < 8 {
               spawn {
                 for %j < 8 {
                   spawn { %a = mul %i, 8 %b = add %a, %j %p = addr i64, %x, %b store %b, %p yield }
                   yield }
                 sync
                 %q = addr i64, %x, %i yield }
               yield }
             yield }
           %s = for %k < 64 iter(%t = 0) {
             %q2 = addr i64, %x, %k %w = load %q2 -> i64 %u = add %t, %w yield %u }
           return %s }",
    ),
];

fn interpreted(unit: &Unit) -> i64 {
    let mut machine = Machine::new(unit);
    match machine.call("f", &[]) {
        Ok(Some(value)) => value.as_i64().expect("it is defined"),
        other => panic!("{other:?}"),
    }
}

fn lowered(text: &str, options: &Options) -> Unit {
    let mut unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    assert!(verify(&unit).is_empty(), "{:?}", verify(&unit));
    let all: Vec<FuncId> = unit.functions.iter().map(|(id, _)| id).collect();
    lower(&mut unit, &mut Analyses::default(), &all, options);
    let findings = verify(&unit);
    assert!(findings.is_empty(), "{findings:?}\n{}", print(&unit));
    unit
}

/// Returns the result of `@f` of a lowered unit.
fn run(unit: &Unit) -> i64 {
    let pool = Pool::load(unit, &["f"], None).expect("it loads");
    pool.call("f", 3).expect("it runs")
}

fn on_the_pool(text: &str, small_work: u64) -> i64 {
    run(&lowered(text, &options_with_eager_forks(small_work)))
}

#[test]
fn all_routes_agree() {
    for (name, text) in PROGRAMS {
        let unit = parse(text, "program").unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.labels));
        let meant = interpreted(&unit);
        let serial = Options {
            target: Target::Serial,
            ..Options::default()
        };
        assert_eq!(
            interpreted(&lowered(text, &serial)),
            meant,
            "{name}, serial"
        );
        for small_work in [0, u64::MAX >> 1] {
            for _ in 0..4 {
                assert_eq!(
                    on_the_pool(text, small_work),
                    meant,
                    "{name}, small below {small_work}"
                );
            }
        }
    }
}

/// A team passes copied values through slots of its own, of the size of its values.
#[test]
fn nested_teams_have_their_own_slots() {
    let program = PROGRAMS.iter().find(|p| p.0 == NESTED_COPIES);
    let (_, text) = program.expect("the program");
    let text = print(&lowered(text, &options_with_eager_forks(0)));
    let (outer, nested) = text
        .split_once("func @f.gr_team(")
        .expect("the function of the outer team's ranks");
    let wide = "alloca {i64, i64, i64, i64, i64, i64}";
    assert!(
        outer.contains(wide) && !outer.contains("alloca {i8}"),
        "{text}"
    );
    assert!(
        nested.contains("alloca {i8}") && !nested.contains(wide),
        "{text}"
    );
}

/// Returns the number of atomic operations of the function whose name ends in `suffix`.
fn atomics(unit: &Unit, suffix: &str) -> Option<usize> {
    let mut functions = unit.functions.iter();
    let (_, function) = functions.find(|(_, f)| f.name.ends_with(suffix))?;
    let body = function.body.as_ref()?;
    let is_atomic = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::AtomicRmw(..));
    Some(body.walk(body.root()).filter(is_atomic).count())
}

/// Accesses that conflict only between iterations are atomic if iterations run concurrently, and plain on a
/// single thread.
#[test]
fn single_thread_sums_are_plain() {
    let text = |name: &str| PROGRAMS.iter().find(|p| p.0 == name).map_or("", |p| p.1);
    let unit = lowered(
        text("sums between iterations"),
        &options_with_eager_forks(0),
    );
    assert_eq!(atomics(&unit, ".gr_range"), Some(1), "{}", print(&unit));
    assert_eq!(atomics(&unit, ".gr_alone"), Some(0), "{}", print(&unit));
    let unit = lowered(
        text("blocks that count each other"),
        &options_with_eager_forks(0),
    );
    assert_eq!(atomics(&unit, ".gr_range"), Some(1), "{}", print(&unit));
    assert_eq!(atomics(&unit, ".gr_alone"), None, "{}", print(&unit));
}

/// Returns the program with its parallel loops made serial and restored, and the number of restored loops.
fn restored(text: &str) -> (Unit, usize) {
    let mut unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let mut count = 0;
    let all: Vec<FuncId> = unit.functions.iter().map(|(id, _)| id).collect();
    project(&mut unit, &all, ThreadCountAnswers::OneWhereTeams);
    for func in all {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        assert!(
            body.walk(body.root())
                .all(|op| !body.kind(op).is_parallel())
        );
        restore(&mut unit, &mut body);
        let is_loop = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::ParFor { .. });
        count += body.walk(body.root()).filter(is_loop).count();
        unit.functions[func].body = Some(body);
    }
    let findings = verify(&unit);
    assert!(findings.is_empty(), "{findings:?}\n{}", print(&unit));
    (unit, count)
}

#[test]
fn projected_loops_are_restored() {
    for (name, text) in PROGRAMS {
        let unit = parse(text, "program").unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.labels));
        let meant = interpreted(&unit);
        let (mut unit, count) = restored(text);
        assert_eq!(interpreted(&unit), meant, "{name}");
        let expected = match *name {
            "a loop that writes" => 1,
            "two reductions over two dimensions" => 2,
            // The reduction takes the maximum.
            "a reduction of the program's own" => 1,
            name if name.starts_with("least and greatest numbers") => 3,
            "three dimensions, narrow indices" => 3,
            "loops in loops, with a private slot" => 1,
            "blocks with memory of their own" | "sums between iterations" => 1,
            _ => 0,
        };
        assert_eq!(count, expected, "{name}:\n{}", print(&unit));
        let all: Vec<FuncId> = unit.functions.iter().map(|(id, _)| id).collect();
        lower(
            &mut unit,
            &mut Analyses::default(),
            &all,
            &options_with_eager_forks(0),
        );
        assert_eq!(run(&unit), meant, "{name}");
    }
}
