//! Checks random fork-join programs, many per module, on the pool.
//!
//! The expected result is the interpreter's for the serial projection, and for two other orders of
//! iterations and ranks. The interpreter also checks for races, in the simplified program too. The module
//! then takes a [`ForkJoinWay`] through the compiler, once for all programs, and each program runs on one
//! to four workers.

use crate::generate::ForkJoinProgram;
use crate::run::pool::{Pool, empty_host, options_with_eager_forks};
use crate::run::verdict::Verdict;
use gradus_analysis::{AliasOptions, Analyses, CallGraph, Effects, PassContext};
use gradus_interp::{Machine, Options};
use gradus_ir::{Flags, FuncId, Linkage, Unit, parse, verify};
use gradus_llvm::{Host, OptLevel, Pipeline};

/// The route of a batch of programs before lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkJoinWay {
    /// Loops become serial and are restored, as around differentiation.
    pub serial_projection: bool,
    /// All simplifications, and task loops as parallel loops.
    pub simplified: bool,
    /// Consecutive loops are fused if possible.
    pub fused: bool,
    /// First of all, parallel ops are lowered to the parallel intrinsics of `gradus/parallel.h` in LLVM IR,
    /// and raised again.
    pub through_intrinsics: bool,
    /// True if small loops do not fork.
    pub small_loops_serial: bool,
    /// True if LLVM's optimiser runs on the lowered code.
    pub optimised: bool,
}

impl ForkJoinWay {
    /// Returns the route of a batch. LLVM's optimiser dominates the time, and runs on an eighth of the
    /// batches.
    pub fn of(batch: u64) -> ForkJoinWay {
        ForkJoinWay {
            serial_projection: batch % 4 == 3,
            simplified: batch % 4 != 0,
            fused: matches!(batch % 4, 0 | 1),
            through_intrinsics: batch % 5 == 4,
            small_loops_serial: batch % 3 == 2,
            optimised: batch % 8 == 5,
        }
    }
}

/// Returns the unit of some programs.
///
/// # Errors
/// A program that cannot be parsed or is rejected by the verifier: a fault of the generator.
pub fn fork_join_unit(programs: &[ForkJoinProgram]) -> Result<Unit, String> {
    let text: String = programs.iter().map(|p| p.text.as_str()).collect();
    let mut unit = parse(&text, "programs").map_err(|d| format!("{d} {:?}", d.labels))?;
    check_verifier(&unit)?;
    for func in unit.functions.ids() {
        let function = &mut unit.functions[func];
        function.defined = false;
        if !function.name.starts_with("p_") {
            function.linkage = Linkage::Internal;
        }
    }
    Ok(unit)
}

/// Checks a unit's programs by a route. Returns a verdict for each.
///
/// # Errors
/// The transformed unit is rejected by the verifier, or cannot be loaded.
pub fn check_fork_join(
    unit: &Unit,
    programs: &[ForkJoinProgram],
    way: &ForkJoinWay,
) -> Result<Vec<Verdict>, String> {
    let names: Vec<&str> = programs.iter().map(|p| p.function.as_str()).collect();
    let (host, mut changed) = match way.through_intrinsics {
        true => round_trip_intrinsics(unit)?,
        false => (empty_host(unit), unit.clone()),
    };
    prepare(&mut changed, way)?;
    let mut lowered = changed.clone();
    let options = options_with_eager_forks(if way.small_loops_serial { 2000 } else { 0 });
    let all = with_bodies(&lowered);
    gradus_par::lower(&mut lowered, &mut Analyses::default(), &all, &options);
    check_verifier(&lowered)?;
    let level = way.optimised.then_some(OptLevel::O3);
    let pool = Pool::load_into(host, &lowered, &names, level)?;
    // The interpreter does not know calls of the runtime library, which replace ops without an intrinsic.
    let changed = (!way.through_intrinsics).then_some(&changed);
    let check = |name: &&str| match check(unit, changed, &pool, name) {
        Ok(()) => Verdict::Right,
        Err(why) => Verdict::Wrong(why),
    };
    Ok(names.iter().map(check).collect())
}

fn check(unit: &Unit, changed: Option<&Unit>, pool: &Pool, name: &str) -> Result<(), String> {
    let meant = interpreted(unit, name, None)?;
    for order in [1, 77] {
        if interpreted(unit, name, Some(order))? != meant {
            return Err("the program itself depends on the order of its threads".into());
        }
    }
    for (changed, order) in changed.iter().flat_map(|c| [(c, None), (c, Some(5))]) {
        let given = interpreted(changed, name, order)?;
        if given != meant {
            return Err(format!(
                "after simplification the result is {given}, expected {meant}"
            ));
        }
    }
    for workers in [1, 2, 3, 4] {
        let given = pool.call(name, workers)?;
        if given != meant {
            return Err(format!(
                "on {workers} workers the result is {given}, expected {meant}"
            ));
        }
    }
    Ok(())
}

/// Returns the result of a program in the interpreter.
pub(crate) fn interpreted(
    unit: &Unit,
    name: &str,
    random_order: Option<u64>,
) -> Result<i64, String> {
    let options = Options {
        random_order,
        races: true,
        check_edges: true,
        ..Options::default()
    };
    match Machine::with_options(unit, options).call(name, &[]) {
        Ok(Some(value)) => value.as_i64().ok_or("the result is undefined".into()),
        Ok(None) => Err("the program returns no result".into()),
        Err(trap) => Err(format!("the interpreter traps: {trap}")),
    }
}

/// Returns the functions of a unit with bodies.
pub(crate) fn with_bodies(unit: &Unit) -> Vec<FuncId> {
    let ids = unit.functions.ids();
    ids.filter(|f| unit.functions[*f].body.is_some()).collect()
}

/// Lowers the parallel ops of a unit to intrinsics, exports it to LLVM bitcode, and imports and raises it
/// again. Returns the host and the unit.
fn round_trip_intrinsics(unit: &Unit) -> Result<(Host, Unit), String> {
    let mut written = unit.clone();
    let all = with_bodies(&written);
    let options = gradus_par::Options {
        target: gradus_par::Target::Intrinsics,
        ..options_with_eager_forks(0)
    };
    gradus_par::lower(&mut written, &mut Analyses::default(), &all, &options);
    check_verifier(&written)?;
    let mut host = empty_host(&written);
    host.export_all(&written).map_err(|d| d.to_string())?;
    host.verify().map_err(|d| d.to_string())?;
    host.run(Pipeline::EarlyPlain).map_err(|d| d.to_string())?;
    let mut host = Host::parse(&host.to_bitcode(), "words").map_err(|d| d.to_string())?;
    let imported = host.import_all();
    if let Some((func, why)) = imported.refused.first() {
        let name = &imported.unit.functions[*func].name;
        return Err(format!("{name} cannot be imported again: {why:?}"));
    }
    let mut read = imported.unit;
    let raised = gradus_raise::raise(&mut read, &gradus_raise::Orphans::Raise);
    for &func in &raised.changed {
        if let Some(mut body) = read.functions[func].body.take() {
            for op in gradus_par::restore(&mut read, &mut body) {
                let flags = &mut body.ops[op].flags;
                *flags = flags.without(Flags::INDEPENDENT);
            }
            read.functions[func].body = Some(body);
        }
    }
    check_verifier(&read)?;
    Ok((host, read))
}

/// Runs the transformations before lowering.
pub(crate) fn prepare(unit: &mut Unit, way: &ForkJoinWay) -> Result<(), String> {
    let functions = with_bodies(unit);
    if way.serial_projection {
        gradus_par::project(
            unit,
            &functions,
            gradus_par::ThreadCountAnswers::OneWhereTeams,
        );
    }
    if way.simplified {
        simplify(unit, &functions);
    }
    if way.fused {
        gradus_par::merge_branches_around_loops(unit, &functions);
        simplify(unit, &functions);
        gradus_par::fuse_parallel_loops(
            unit,
            &mut Analyses::default(),
            &functions,
            &AliasOptions::default(),
        );
        check_verifier(unit)?;
        simplify(unit, &functions);
    }
    for &func in &functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            if way.serial_projection {
                gradus_par::restore(unit, &mut body);
            } else if way.simplified {
                gradus_par::convert_task_loops(unit, &mut body);
            }
            unit.functions[func].body = Some(body);
        }
    }
    check_verifier(unit)
}

fn simplify(unit: &mut Unit, functions: &[FuncId]) {
    let effects = Effects::of(unit, &CallGraph::of(unit, functions));
    let alias = AliasOptions::default();
    for &func in functions {
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_simplify::simplify(unit, &mut body, &facts);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Checks a unit by the verifier.
pub(crate) fn check_verifier(unit: &Unit) -> Result<(), String> {
    match verify(unit).first() {
        None => Ok(()),
        Some(finding) => Err(format!("{finding} {:?}", finding.notes)),
    }
}
