//! Compares the gradients of random OpenMP programs with the gradients of equal programs without OpenMP.
//!
//! Per batch: C → clang with and without OpenMP → both derivatives of each program → run in this process on
//! the pool. Three conditions hold for a right program:
//!
//! 1. its parallel derivatives pass the common checks (reverse against forward mode, forward mode against
//!    finite differences);
//! 2. its gradient equals the serial program's on one and on three workers, several times;
//! 3. the interpreter finds no race in the derivatives before lowering, for any schedule.

use crate::generate::ParallelCProgram;
use crate::oracle::c_compile::{compile_c_derivatives, expected};
use crate::oracle::check::{Runner, Vector, check_all_points, directions, points};
use crate::oracle::ir_check::{matches_interpreter_in_one_unit, run_along_path};
use crate::run::compiled_module::{Loaded, Subject};
use crate::run::pool;
use crate::run::verdict::Verdict;
use gradus_ir::{FuncId, Unit, parse, verify};
use gradus_llvm::OptLevel;
use gradus_pipeline::Options;

/// The number of gradients computed on three workers.
const REPETITIONS: usize = 5;

/// Runtime calls in the outlined bodies of raised regions, which are dead.
const UNRAISED: &[&str] = &[
    "__kmpc_fork_call",
    "__kmpc_global_thread_num",
    "__kmpc_for_static_init_4",
    "__kmpc_for_static_fini",
    "__kmpc_dispatch_init_4",
    "__kmpc_dispatch_next_4",
    "__kmpc_dispatch_deinit",
    "__kmpc_reduce",
    "__kmpc_reduce_nowait",
    "__kmpc_end_reduce",
    "__kmpc_end_reduce_nowait",
    "__kmpc_barrier",
    "__kmpc_single",
    "__kmpc_end_single",
    "__kmpc_critical",
    "__kmpc_end_critical",
    "__kmpc_omp_task_alloc",
    "__kmpc_omp_task",
    "__kmpc_omp_taskwait",
    "__kmpc_taskgroup",
    "__kmpc_taskloop",
    "__kmpc_taskloop_5",
    "__kmpc_end_taskgroup",
    // A program with this query has no derivative and does not run.
    "omp_get_level",
];

/// The definition of these calls: a program that executes one was not raised, and crashes.
extern "C" fn unraised() {
    std::process::abort();
}

/// The route of a batch of OpenMP programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelCWay {
    /// Flags of the compiler.
    pub flags: &'static [&'static str],
    /// True if LLVM's optimiser runs on the output.
    pub optimised: bool,
}

impl ParallelCWay {
    /// Returns the route of a batch: like `gradus cc` at -O0 and above, and sometimes after clang's
    /// optimiser. LLVM's optimiser is slow, and runs on a quarter of the batches.
    pub fn of(batch: u64) -> ParallelCWay {
        let flags: &[&str] = match batch % 8 {
            7 => &["-O1"],
            even if even % 2 == 0 => &["-O2", "-Xclang", "-disable-llvm-passes"],
            _ => &["-O0"],
        };
        ParallelCWay {
            flags,
            optimised: batch % 4 == 1,
        }
    }
}

/// Checks programs, compiled together. Returns a verdict for each.
///
/// # Errors
/// The compiler refuses the programs, or the output cannot be loaded.
pub fn check_parallel_c(
    programs: &[ParallelCProgram],
    way: &ParallelCWay,
) -> Result<Vec<Verdict>, String> {
    let mut verdicts: Vec<Option<Verdict>> = vec![None; programs.len()];
    loop {
        let open = |i: &usize| verdicts[*i].is_none();
        let left: Vec<usize> = (0..programs.len()).filter(open).collect();
        let picked: Vec<&ParallelCProgram> = left.iter().map(|i| &programs[*i]).collect();
        match SerialAndParallel::make(&picked, way)? {
            Ok(both) => {
                let found = (0..picked.len()).map(|i| match picked[i].refused_with {
                    None => both.verdict(i),
                    Some(_) => Verdict::Right,
                });
                for (i, verdict) in std::iter::zip(left, found) {
                    verdicts[i] = Some(verdict);
                }
            }
            // A program without derivatives may call an unavailable library: the others are tried without
            // it.
            Err(refused) => {
                for (i, verdict) in std::iter::zip(left, refused) {
                    verdicts[i] = verdict;
                }
            }
        }
        if verdicts.iter().all(Option::is_some) {
            let found = std::iter::zip(programs, verdicts.into_iter().flatten());
            return Ok(found
                .map(|(program, verdict)| expected(program.refused_with, verdict))
                .collect());
        }
    }
}

/// Programs with and without OpenMP, loaded, and the unit of the parallel derivatives.
struct SerialAndParallel {
    subjects: Vec<Subject>,
    serial: Loaded,
    parallel: Loaded,
    unit: Unit,
}

/// The verdicts on programs, some of which have no derivatives.
type Refused = Vec<Option<Verdict>>;

impl SerialAndParallel {
    fn make(
        programs: &[&ParallelCProgram],
        way: &ParallelCWay,
    ) -> Result<Result<SerialAndParallel, Refused>, String> {
        let sources: Vec<&str> = programs.iter().map(|p| p.source.as_str()).collect();
        let subjects = programs.iter().map(|p| Subject {
            function: p.function.clone(),
            single: false,
        });
        let subjects: Vec<Subject> = subjects.collect();
        let options = |parallel: bool| Options {
            skip_late: true,
            // Also compares each cached analysis with a new one.
            verify_each: true,
            parallel,
            few_adds: true,
            dump_after: match parallel {
                true => vec!["rewrite-call-sites".into()],
                false => Vec::new(),
            },
            ..Options::default()
        };
        let flags = [way.flags, &["-fopenmp"]].concat();
        let (parallel, refused) =
            compile_c_derivatives(&sources, &subjects, &flags, options(true))?;
        if refused.iter().any(Option::is_some) {
            return Ok(Err(refused));
        }
        let (serial, refused) =
            compile_c_derivatives(&sources, &subjects, way.flags, options(false))?;
        if refused.iter().any(Option::is_some) {
            return Ok(Err(refused));
        }
        let made = parallel.zip(serial);
        let (parallel, serial) = made.ok_or("the compiler produced no output")?;
        let unit = with_parallel_loops(
            parallel
                .dump
                .as_ref()
                .ok_or("the compiler produced no IR dump")?,
        )?;
        let level = way.optimised.then_some(OptLevel::O2);
        let both = SerialAndParallel {
            subjects,
            serial: serial.load(level)?,
            parallel: parallel.load(level)?,
            unit,
        };
        pool::define(&both.parallel.jit)?;
        let unraised: Vec<(&str, usize)> = UNRAISED
            .iter()
            .map(|name| (*name, unraised as *const () as usize))
            .collect();
        let defined = both.parallel.jit.define(&unraised);
        defined.map_err(|d| d.to_string())?;
        Ok(Ok(both))
    }

    fn verdict(&self, i: usize) -> Verdict {
        Verdict::of(self.check(i))
    }

    fn check(&self, i: usize) -> Result<Verdict, String> {
        let subject = &self.subjects[i];
        let serial = Runner::new(&self.serial, i, subject)?;
        let parallel = Runner::new(&self.parallel, i, subject)?;
        pool::set_workers(1);
        matches_interpreter_in_one_unit(&self.unit, &parallel, subject)?;
        let x = points()[0];
        let (_, y_adj) = directions(0, 0);
        let wanted = serial.reverse(&x, &y_adj)?;
        same("one worker", parallel.reverse(&x, &y_adj)?, wanted)?;
        pool::set_workers(3);
        for _ in 0..REPETITIONS {
            same("three workers", parallel.reverse(&x, &y_adj)?, wanted)?;
        }
        let along =
            |of: &Vector, at: &Vector, curves| run_along_path(&self.unit, subject, of, at, curves);
        check_all_points(&parallel, false, Some(&along))
    }
}

/// Returns the program in the form before lowering: with independent loops as parallel loops.
fn with_parallel_loops(text: &str) -> Result<Unit, String> {
    let mut unit = parse(text, "derivatives").map_err(|d| format!("{d} {:?}", d.labels))?;
    let functions: Vec<FuncId> = unit.functions.ids().collect();
    for func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_par::restore(&mut unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
    match verify(&unit).first() {
        None => Ok(unit),
        Some(finding) => Err(format!("{finding} {:?}", finding.notes)),
    }
}

/// Checks that a gradient and its value equal the serial program's.
fn same(who: &str, own: (Vector, Vector), serial: (Vector, Vector)) -> Result<(), String> {
    for (what, own, serial) in [("value", own.0, serial.0), ("gradient", own.1, serial.1)] {
        let scale = serial.iter().fold(1e-2, |m: f64, x| m.max(x.abs()));
        for (i, (a, b)) in std::iter::zip(own, serial).enumerate() {
            let apart = (a - b).abs();
            if apart.is_nan() || apart > 1e-10 * scale {
                return Err(format!(
                    "the {what} on {who}: number {i} is {a:e}, in the serial run {b:e}"
                ));
            }
        }
    }
    Ok(())
}
