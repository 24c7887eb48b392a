//! Random C programs through the whole compiler: clang, both derivatives, the checks.

use crate::generate::c::{C_INCLUDES, CProgram};
use crate::oracle::check::{Runner, Vector, check_all_points};
use crate::oracle::ir_check::{import_functions, run_along_path};
use crate::run::compiled_module::{CompiledDerivatives, Module, Subject, compile_derivatives};
use crate::run::verdict::Verdict;
use gradus_ir::{Diagnostic, Unit};
use gradus_pipeline::{Level, Options, may_hold_words, preserve_words};
use std::cell::LazyCell;
use std::io::Write;
use std::process::{Command, Stdio};

/// The routes from source to differentiation: flags of the compiler.
pub const ROUTES: &[&[&str]] = &[
    &["-O0"],
    &["-O1"],
    &["-O2", "-Xclang", "-disable-llvm-passes"],
    &["-O3"],
];

/// Functions that random programs declare and never call: the compiler knows nothing of them.
const UNKNOWN_CALLEES: &[&str] = &["testkit_keep", "testkit_kept", "testkit_same"];

/// The definition of these functions.
extern "C" fn unknown_callee() {
    std::process::abort();
}

/// Checks programs, compiled together with these flags.
///
/// # Errors
/// The compiler refuses the programs, or the output cannot be loaded.
pub fn check_c(programs: &[CProgram], flags: &[&str]) -> Result<Vec<Verdict>, String> {
    let sources: Vec<&str> = programs.iter().map(|p| p.source.as_str()).collect();
    let subjects: Vec<Subject> = programs
        .iter()
        .map(|p| Subject {
            function: p.function.clone(),
            single: p.single,
        })
        .collect();
    let (made, verdicts) = compile_c_derivatives(&sources, &subjects, flags, Options::default())?;
    let loaded = made.map(|made| made.load(None)).transpose()?;
    if let Some(loaded) = &loaded {
        let unknown: Vec<(&str, usize)> = UNKNOWN_CALLEES
            .iter()
            .map(|name| (*name, unknown_callee as *const () as usize))
            .collect();
        loaded.jit.define(&unknown).map_err(|d| d.to_string())?;
    }
    // The interpreter is needed only for a derivative that finite differences do not confirm.
    let unit = LazyCell::new(|| c_unit(programs, flags));
    let judge = |(i, verdict): (usize, Option<Verdict>)| match (verdict, &loaded) {
        (Some(verdict), _) => verdict,
        // A program without a derivative does not run.
        (None, _) if programs[i].refused_with.is_some() => Verdict::Right,
        (None, None) => Verdict::Crash("the compiler produced no output".into()),
        (None, Some(loaded)) => {
            let along = |of: &Vector, at: &Vector, curves| {
                let unit = unit.as_ref().map_err(String::clone)?;
                run_along_path(unit, &subjects[i], of, at, curves)
            };
            let runner = Runner::new(loaded, i, &subjects[i]);
            let single = subjects[i].single;
            Verdict::of(runner.and_then(|runner| check_all_points(&runner, single, Some(&along))))
        }
    };
    let found = verdicts.into_iter().enumerate().map(judge);
    Ok(std::iter::zip(programs, found)
        .map(|(program, verdict)| expected(program.refused_with, verdict))
        .collect())
}

/// Returns the verdict on a program that the compiler must refuse with a code, if one is given.
pub(crate) fn expected(refused_with: Option<&str>, verdict: Verdict) -> Verdict {
    match (refused_with, verdict) {
        (None, verdict) | (Some(_), verdict @ Verdict::Crash(_)) => verdict,
        (Some(wanted), Verdict::Refused { code, .. }) if code == wanted => Verdict::Right,
        (Some(wanted), verdict) => {
            Verdict::Wrong(format!("expected a refusal with {wanted}, got {verdict:?}"))
        }
    }
}

/// Returns the derivatives of programs compiled together, and the verdicts on programs without derivatives.
///
/// # Errors
/// The compiler refuses the programs.
pub(crate) fn compile_c_derivatives(
    sources: &[&str],
    subjects: &[Subject],
    flags: &[&str],
    options: Options,
) -> Result<(Option<CompiledDerivatives>, Vec<Option<Verdict>>), String> {
    let (source, ends) = join_sources(sources);
    let bytes = bitcode(&source, flags)?;
    let line = |d: &Diagnostic| d.labels.first().map(|label| label.span.line);
    let blamed = |d: &Diagnostic| line(d).map(|line| ends.partition_point(|end| *end < line));
    let shown = |d: &Diagnostic| {
        let text = line(d).and_then(|line| source.lines().nth((line as usize).wrapping_sub(1)));
        text.unwrap_or("").trim().to_string()
    };
    compile_derivatives(&Module {
        bytes: &bytes,
        subjects,
        blamed: &blamed,
        shown: &shown,
        options,
        level: Level::O2,
    })
}

/// Returns the unit of programs, compiled together with these flags.
///
/// # Errors
/// The compiler refuses the programs, or a function cannot be imported.
pub fn c_unit(programs: &[CProgram], flags: &[&str]) -> Result<Unit, String> {
    let sources: Vec<&str> = programs.iter().map(|p| p.source.as_str()).collect();
    let names: Vec<&str> = programs.iter().map(|p| p.function.as_str()).collect();
    import_functions(&bitcode(&join_sources(&sources).0, flags)?, &names)
}

/// Joins all programs into a file, and returns each program's last line.
fn join_sources(sources: &[&str]) -> (String, Vec<u32>) {
    let mut all = String::from(C_INCLUDES);
    let mut ends = Vec::new();
    for source in sources {
        all.push_str(source);
        ends.push(all.lines().count() as u32);
    }
    (all, ends)
}

/// Returns the bitcode of a program, with the words that clang would drop.
fn bitcode(source: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let whole = ["-c", "-emit-llvm", "-g", "-w", "-ffp-contract=off"];
    if !may_hold_words(source.as_bytes()) {
        return clang(source, "c", &[&whole, flags].concat());
    }
    let text = clang(source, "c", &[&["-E"], flags].concat())?;
    let kept = preserve_words(&String::from_utf8_lossy(&text)).text;
    clang(&kept, "cpp-output", &[&whole, flags].concat())
}

/// Returns clang's output for a text.
fn clang(source: &str, language: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let mut child = Command::new(clang)
        .args(["-x", language, "-", "-o", "-"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start clang: {e}"))?;
    let mut input = child.stdin.take().ok_or("clang has no input pipe")?;
    std::thread::scope(|scope| {
        // A thread writes the input concurrently: preprocessed text is returned before the input ends.
        let written = scope.spawn(move || input.write_all(source.as_bytes()));
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        match (output.status.success(), written.join()) {
            (true, Ok(Ok(()))) => Ok(output.stdout),
            _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// x, or half of it if both are equal: the branch taken at zero only has another slope than its
    /// surroundings.
    #[test]
    fn equality_branch_is_isolated() {
        let program = CProgram {
            source: "static double half(double a) { return 0.5 * a; }\n\
                double f_1(long n, double *x, double s) {\n\
                double h = half(x[0]); if (x[0] != h) return x[0] + s; return h + s; }\n"
                .into(),
            function: "f_1".into(),
            contents: BTreeSet::new(),
            single: false,
            refused_with: None,
        };
        for flags in [&["-O0"], &["-O1"]] {
            let found = check_c(std::slice::from_ref(&program), flags).unwrap();
            assert!(matches!(found[0], Verdict::Isolated(_)), "{found:?}");
        }
    }
}
