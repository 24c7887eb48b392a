//! Splits a compilation into halves: source → unoptimised bitcode from the front end, and bitcode → the
//! user's output, with the user's own flags. Gradus's passes run between the halves.
//!
//! The halves' arguments depend on the compiler: [`cc1`] for C and C++, [`fc1`] for Fortran.

mod cc1;
mod fc1;

use crate::clang_jobs::Job;
use crate::settings::Language;
use gradus_pipeline::Level;
use std::path::Path;

/// The two halves of a user's compilation.
#[derive(Clone, Debug)]
pub struct SplitCompilation {
    /// From source to unoptimised bitcode, with names and lines.
    pub front: Job,
    /// From bitcode to the user's output.
    pub back: Job,
    /// The user's optimisation level.
    pub level: Level,
    /// True if the user requested debug information.
    pub debug: bool,
}

/// The debug information emitted by the front half if the user requested none; stripped before code
/// generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugDetail {
    /// Lines, for diagnostics and reports.
    Lines,
    /// Lines, names and types, for headers.
    Types,
}

/// Returns the language of a compilation, by its first argument.
pub fn language(args: &[String]) -> Language {
    match args.first().map(String::as_str) {
        Some(fc1::FIRST) => Language::Fortran,
        _ => Language::C,
    }
}

/// Splits a compilation. `bitcode` is the front half's output, `derived` the back half's input.
pub fn split_compilation(
    job: &Job,
    bitcode: &Path,
    derived: &Path,
    detail: DebugDetail,
) -> SplitCompilation {
    let level = level(&job.args);
    let debug = has_debug(&job.args);
    let detail = (!debug).then_some(detail);
    let (front, back) = match language(&job.args) {
        Language::Fortran => (
            fc1::front(&job.args, bitcode, detail),
            fc1::back(&job.args, derived),
        ),
        Language::C | Language::PlusPlus => (
            cc1::front(&job.args, bitcode, detail),
            cc1::back(&job.args, derived),
        ),
    };
    let of = |args| Job {
        program: job.program.clone(),
        args,
    };
    SplitCompilation {
        front: of(front),
        back: of(back),
        level,
        debug,
    }
}

/// Returns the optimisation level in a command line.
pub fn level(args: &[String]) -> Level {
    let last = args.iter().rev().find(|a| a.starts_with("-O"));
    match last.map(String::as_str) {
        None | Some("-O0") => Level::O0,
        Some("-O1" | "-Og") => Level::O1,
        Some("-O3" | "-Ofast") => Level::O3,
        Some(_) => Level::O2,
    }
}

/// Returns true if a command line requests debug information.
pub fn has_debug(args: &[String]) -> bool {
    args.iter().any(|a| a.starts_with("-debug-info-kind"))
}

/// Returns the arguments of a back half with another input module and another output.
pub fn with_input_and_output(back: &[String], derived: &Path, output: &Path) -> Vec<String> {
    let mut args = back.to_vec();
    if let Some(last) = args.last_mut() {
        *last = derived.display().to_string();
    }
    let at = args.iter().position(|a| a == "-o");
    if let Some(word) = at.and_then(|at| args.get_mut(at + 1)) {
        *word = output.display().to_string();
    }
    args
}

/// Replaces the module name in LLVM text by the source's name; the compiler prints the name of the
/// temporary file. Other bytes stay unchanged.
pub fn with_module_name(text: Vec<u8>, source: &Path) -> Vec<u8> {
    const START: &[u8] = b"; ModuleID = '";
    let end = text.iter().position(|b| *b == b'\n');
    match end.filter(|_| text.starts_with(START)) {
        Some(end) => {
            let line = format!("; ModuleID = '{}'", source.display());
            [line.as_bytes(), &text[end..]].concat()
        }
        None => text,
    }
}

/// Returns the arguments of a back half without temporary paths, for reproducible fat objects.
pub fn without_temporary_paths(back: &[String]) -> Vec<String> {
    let mut args = with_input_and_output(back, Path::new("-"), Path::new("-"));
    while let Some(at) = args.iter().position(|a| a == "-split-dwarf-output") {
        args.drain(at..args.len().min(at + 2));
    }
    args
}

/// Returns the arguments of a back half that does not optimise, as far as the compiler has an option for
/// it.
pub(crate) fn without_passes(mut args: Vec<String>) -> Vec<String> {
    let said = match args.first().map(String::as_str) {
        Some(fc1::FIRST) => {
            args.retain(|arg| !arg.starts_with("-O"));
            "-O0"
        }
        _ => "-disable-llvm-passes",
    };
    args.insert(args.len().min(1), said.to_string());
    args
}

/// Turns an LTO compilation into the compilation of an ordinary object, which can carry its module.
pub(crate) fn without_lto(job: &Job) -> Job {
    let mut job = job.clone();
    let of_lto = [
        "-flto",
        "-fsplit-lto-unit",
        "-ffat-lto-objects",
        "-fno-split-lto-unit",
    ];
    job.args
        .retain(|arg| !of_lto.iter().any(|start| arg.starts_with(start)));
    for arg in &mut job.args {
        if arg == "-emit-llvm-bc" {
            *arg = "-emit-obj".to_string();
        }
    }
    job
}

/// Returns the options that turn LLVM's fast instruction selection off, for a compilation at -O0. The selection takes an
/// address from a floating-point register if casts of a loaded `double` make the address, as in optimised code of a union.
fn without_fast_isel(args: &[String]) -> impl Iterator<Item = String> {
    let options = ["-mllvm", "-fast-isel=0"].map(String::from);
    let is_used = args.iter().any(|arg| arg == "-O0");
    options.into_iter().filter(move |_| is_used)
}

/// The options that select a compilation's output.
const EMITS: [&str; 4] = ["-emit-obj", "-S", "-emit-llvm", "-emit-llvm-bc"];

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &str) -> Job {
        Job {
            program: "clang".into(),
            args: words.split_whitespace().map(String::from).collect(),
        }
    }

    #[test]
    fn the_halves_share_code_generation_and_split_the_rest() {
        let whole = job(
            "-cc1 -triple t -O0 -emit-obj -discard-value-names -ffunction-sections -I inc -DA=1 -Wall \
             -std=c11 -o a.o -x c a.c",
        );
        let halves = split_compilation(
            &whole,
            Path::new("a.bc"),
            Path::new("d.bc"),
            DebugDetail::Lines,
        );
        let front = halves.front.args.join(" ");
        assert!(front.contains("-O2") && !front.contains("-O0") && !front.contains("-emit-obj"));
        assert!(
            front.contains("-I inc") && front.contains("-o a.bc") && front.ends_with("-x c a.c")
        );
        assert!(front.contains("line-tables-only") && !halves.debug);
        let back = halves.back.args.join(" ");
        assert_eq!(
            back,
            "-cc1 -triple t -O0 -emit-obj -discard-value-names -ffunction-sections -o a.o -mllvm -fast-isel=0 -x ir d.bc"
        );
        assert_eq!(halves.level, Level::O0);
        let mut given = halves.back.args.clone();
        given.splice(1..1, ["-split-dwarf-output".into(), "a.dwo".into()]);
        let from_given = cc1::front(&given, Path::new("a.bc"), None);
        assert!(
            !from_given
                .iter()
                .any(|arg| arg.contains("dwarf") || arg == "a.dwo")
        );
        assert_eq!(
            without_temporary_paths(&given).join(" "),
            "-cc1 -triple t -O0 -emit-obj -discard-value-names -ffunction-sections -o - -mllvm -fast-isel=0 -x ir -"
        );
    }

    #[test]
    fn only_the_name_of_a_module_changes() {
        let named = |text: &str| with_module_name(text.into(), Path::new("a.c"));
        assert_eq!(named("; ModuleID = '/t/d.bc'\nx"), b"; ModuleID = 'a.c'\nx");
        for text in [
            "",
            "; ModuleID = '",
            "\x7fELF\n",
            "source\n; ModuleID = 'x'\n",
        ] {
            assert_eq!(named(text), text.as_bytes());
        }
    }

    #[test]
    fn without_a_level_the_front_end_still_optimises() {
        let halves = split_compilation(
            &job("-cc1 -emit-obj -o a.o -x c a.c"),
            Path::new("b"),
            Path::new("d"),
            DebugDetail::Types,
        );
        assert!(
            halves
                .front
                .args
                .contains(&"-debug-info-kind=constructor".to_string())
        );
        assert!(halves.front.args.contains(&"-O2".to_string()));
        assert_eq!(halves.level, Level::O0);
    }
}
