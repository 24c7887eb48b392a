//! Random fork-join programs under ThreadSanitizer, many per binary.
//!
//! Like in [`fork_join_check`](crate::oracle::fork_join_check), the module takes a [`ForkJoinWay`] through the
//! compiler, with `sanitize_thread` on every function. clang instruments the lowered code, `gradus cc`
//! links it with the runtime library, and a `main` calls the programs in sequence, each announced by a
//! line: a later report belongs to that program. Every loop forks, several times on two and on four
//! workers. A program must print the interpreter's result.

use crate::generate::ForkJoinProgram;
use crate::oracle::fork_join_check::{
    ForkJoinWay, check_verifier, interpreted, prepare, with_bodies,
};
use crate::run::pool::{empty_host, options_with_eager_forks};
use crate::run::verdict::Verdict;
use gradus_analysis::Analyses;
use gradus_ir::{Attr, AttrValue, BinaryOp, Body, Builder, Op, OpKind, RmwOp, Unit};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

/// The prefix of the line that announces a program's output and reports.
const PROGRAM_PREFIX: &str = "program ";
const WORKERS: [&str; 2] = ["2", "4"];
/// The number of runs of a program: a worker may finish before another wakes up, and the sanitizer sees
/// races between different threads only.
const REPETITIONS: usize = 30;

/// Makes the atomic updates of a unit's programs plain: most programs then have a race.
pub fn seed_races(unit: &mut Unit) {
    for func in with_bodies(unit) {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for op in body.walk(body.root()).collect::<Vec<Op>>() {
            make_plain(unit, &mut body, op);
        }
        unit.functions[func].body = Some(body);
    }
}

fn make_plain(unit: &mut Unit, body: &mut Body, op: Op) {
    let update = match body.kind(op) {
        OpKind::AtomicRmw(RmwOp::Add, _) => BinaryOp::Add,
        OpKind::AtomicRmw(RmwOp::Xor, _) => BinaryOp::Xor,
        OpKind::AtomicRmw(RmwOp::Or, _) => BinaryOp::Or,
        _ => return,
    };
    let (place, value) = (body.operand(op, 0), body.operand(op, 1));
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(op);
    let ty = b.body.ty(value);
    let old = b.load(ty, place);
    let new = b.binary(update, old, value);
    b.store(new, place);
    let result = b.body.result(op);
    b.body.replace_uses(result, old);
    b.body.erase(op);
}

/// Checks a unit's programs by a route. Returns a verdict for each. `gradus` links them, in `folder`.
///
/// # Errors
/// The transformed unit is rejected by the verifier, or a compiler refuses it.
pub fn check_sanitized(
    unit: &Unit,
    programs: &[ForkJoinProgram],
    way: &ForkJoinWay,
    gradus: &Path,
    folder: &Path,
) -> Result<Vec<Verdict>, String> {
    let binary = built(unit, programs, way, gradus, folder)?;
    let outputs: Vec<String> = WORKERS
        .iter()
        .map(|workers| run(&binary, workers))
        .collect::<Result<_, _>>()?;
    let verdict = |program| match judge(unit, program, &outputs) {
        Ok(()) => Verdict::Right,
        Err(why) => Verdict::Wrong(why),
    };
    Ok(programs.iter().map(verdict).collect())
}

fn built(
    unit: &Unit,
    programs: &[ForkJoinProgram],
    way: &ForkJoinWay,
    gradus: &Path,
    folder: &Path,
) -> Result<std::path::PathBuf, String> {
    let mut lowered = unit.clone();
    enable_tsan(&mut lowered);
    prepare(&mut lowered, way)?;
    let all = with_bodies(&lowered);
    gradus_par::lower(
        &mut lowered,
        &mut Analyses::default(),
        &all,
        &options_with_eager_forks(0),
    );
    enable_tsan(&mut lowered);
    check_verifier(&lowered)?;
    let mut host = empty_host(&lowered);
    host.export_all(&lowered).map_err(|d| d.to_string())?;
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).map_err(|e| format!("{name}: {e}"))
    };
    write("programs.bc", &host.to_bitcode())?;
    write("main.c", main_of(programs).as_bytes())?;
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let level = if way.optimised { "-O2" } else { "-O1" };
    let mut instrument = Command::new(clang);
    instrument.args([level, "-w", "-fsanitize=thread", "-c", "-x", "ir"]);
    done(
        instrument
            .args(["programs.bc", "-o", "programs.o"])
            .current_dir(folder),
    )?;
    let mut link = Command::new(gradus);
    link.args(["cc", "-O1", "-w", "-fsanitize=thread", "main.c"]);
    done(
        link.args(["programs.o", "-o", "programs", "-lm"])
            .current_dir(folder),
    )?;
    Ok(folder.join("programs"))
}

/// Enables ThreadSanitizer for all functions.
fn enable_tsan(unit: &mut Unit) {
    for func in with_bodies(unit) {
        let mut attrs = unit.attrs(unit.functions[func].attrs).clone();
        if attrs.function("sanitize_thread").is_none() {
            attrs.function.push(Attr {
                name: "sanitize_thread".into(),
                value: AttrValue::Flag,
            });
            unit.functions[func].attrs = unit.intern_attrs(attrs);
        }
    }
}

fn main_of(programs: &[ForkJoinProgram]) -> String {
    let mut text = String::from("#include <stdio.h>\n");
    for program in programs {
        let _ = writeln!(text, "long {}(void);", program.function);
    }
    text.push_str("int main(void) {\n");
    for ForkJoinProgram { function, .. } in programs {
        let _ = writeln!(
            text,
            "  fprintf(stderr, \"\\n{PROGRAM_PREFIX}{function}\\n\");"
        );
        let _ = writeln!(
            text,
            "  for (int i = 0; i < {REPETITIONS}; i++) fprintf(stderr, \"= %ld\\n\", {function}());"
        );
    }
    text.push_str("}\n");
    text
}

fn done(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Returns the output of a run.
fn run(binary: &Path, workers: &str) -> Result<String, String> {
    let mut command = Command::new(binary);
    command.env("GRADUS_NUM_THREADS", workers);
    command.env("GRADUS_FORCE_FORK", "1");
    command.env("TSAN_OPTIONS", "exitcode=0 report_signal_unsafe=0");
    let output = done(&mut command)?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Checks that nothing was reported while a program ran, and that it printed the expected result.
fn judge(unit: &Unit, program: &ForkJoinProgram, outputs: &[String]) -> Result<(), String> {
    let mark = format!("\n{PROGRAM_PREFIX}{}\n", program.function);
    let mut said = Vec::new();
    for (output, workers) in std::iter::zip(outputs, WORKERS) {
        let (_, own) = output.split_once(&mark).ok_or("the program did not run")?;
        let own = own
            .split(&format!("\n{PROGRAM_PREFIX}"))
            .next()
            .unwrap_or_default();
        // A report at the end concerns all programs.
        if let Some(at) = own.find("WARNING: ThreadSanitizer") {
            return Err(format!("on {workers} workers: {}", &own[at..]));
        }
        let lines = own.lines().filter(|line| line.starts_with("= "));
        said.push((workers, lines));
    }
    let meant = format!("= {}", interpreted(unit, &program.function, None)?);
    for (workers, lines) in said {
        let lines: Vec<&str> = lines.collect();
        if lines.len() != REPETITIONS || lines.iter().any(|line| **line != meant) {
            return Err(format!(
                "on {workers} workers the program prints {lines:?}, expected {meant}"
            ));
        }
    }
    Ok(())
}
