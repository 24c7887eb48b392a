//! The command `gradus`. Besides its bindings, the only crate that prints and reads environment and clock.
//!
//! The passes run in the program `gradus-compiler`. A link to this program named `gradus-cc`, `gradus-c++`,
//! `gradus-fc`, `gradus-nvcc` or `nvcc` acts as `gradus cc`, and so on.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bug_report;
mod check;
mod dev;
mod drivers;
mod explain;
mod grad;
mod install;
mod json;
mod options;
mod render;
mod said;
mod session;
mod signals;
mod surroundings;
mod version;

use gradus::Language;
use session::Session;

use std::ffi::OsString;
use std::process::ExitCode;

/// The exit status of an error or a refusal.
const FAILED: u8 = 1;
/// The exit status of an exceeded limit.
const LIMIT: u8 = 3;

/// The commands with a compiler's command line.
const DRIVERS: [&str; 4] = ["cc", "c++", "fc", "nvcc"];

const USAGE: &str = "\
gradus: automatic differentiation for existing C, C++, Fortran, Rust and CUDA code

  gradus grad FILE… -f NAME [--wrt x,y] [--mode reverse,forward] [-o OUT] [-- compiler flags]
      writes one object with the files' code and the derivative, a C header, and a report; the
      optimisation level is -O2 unless the flags set another level
      --name SYMBOL     the derivative's symbol (default NAME_vjp or NAME_jvp)
      --with-primal     return the function's value, too
      --inactive a,b    arguments without a derivative, whatever the function does with the arguments
      --width N         vector mode: N tangents or cotangents per call
      --beside          emit the derivatives alone; link the output with the files' own objects
      --emit KIND       obj (default), llvm, bc, asm, gir, header, shared (a shared library that exports the
                        functions and derivatives only)
      --entry uniform   with --emit shared: also export `void NAME__u(void **args)` for each function
      --signature FILE  write the signatures of the functions and derivatives as JSON
      --strong-zero     define zero times infinity or NaN as zero (also of check, cc and c++)
      --allow=text-round-trip
                        accept numbers that pass through text or a file, with a warning: derivatives end
                        there (also of check and the drivers)
  gradus check FILE… -f NAME [--wrt x,y] --arg n=100 --arg 'x=rand(n)' … [-- compiler flags]
      tests the derivative: compares forward mode, reverse mode and finite differences
      --arg NAME=VALUE  a number; [NUMBER, …]; rand, zeros, ones, iota (LENGTH, …); randint(LENGTH, BOUND)
      --single          the function computes in float: loosen the tolerances
      --driver MAIN.c   a program that calls the function and passes the numbers; given(LENGTH) passes arrays
      --limit SECONDS   time limit for all calls together (60)
  gradus cc …, gradus c++ …, gradus fc …
      clang and flang for programs that call __enzyme_autodiff, __enzyme_fwddiff or gradus.h
      --par-report      report the outcome of every parallel region and loop (with -fopenmp), by source line
      --par-target=T    code for parallel regions: runtime (Gradus's thread pool), openmp (the threads of the OpenMP
                        library) or, with -c -emit-llvm, intrinsics (LLVM IR with parallel intrinsics, for gradus cc)
      --deterministic   equal bits for any number of threads (also of grad and nvcc)
      --restructure-all send every function through the IR and back: a self-test
  gradus nvcc …
      nvcc's command line: compiles CUDA programs for CPUs
      --gpu-report      report every kernel: barriers, values saved across barriers, vectorised loops
  gradus dev IN [-f NAME] [--after=PASS] [--print] [--verify-each] [--time] [--deterministic]
      runs the passes, prints the IR and the time of each pass
  gradus explain CODE
      explains a diagnostic, such as GRD0005
  gradus install PREFIX
      installs the command with headers, run-time library, CMake and pkg-config files below PREFIX
  gradus bug-report [-o ARCHIVE] -- COMMAND …
      runs a command and packs the compiled modules, the flags and the versions into an archive
  gradus bug-report --replay ARCHIVE
      compiles the modules of an archive again

Options of every command (for the drivers in one word, with `=`):
      --message-format=json   print diagnostics as JSON, one per line, in rustc's format
      --max-time SECONDS      time limit of each compilation (3600)
      --max-memory SIZE       memory limit of each compilation and of a check's program: 500M, 4G (16G)

Exit status: 0 success, 1 error or refusal, 3 limit reached; the drivers pass on the compiler's status.
";

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let mut args: Vec<OsString> = words.collect();
    let called = called.to_string_lossy().into_owned();
    if let Some(driver) = driver_of_name(&called) {
        args.insert(0, driver.into());
    }
    let status = run(&args);
    ExitCode::from(status)
}

/// Returns the driver that a link to this program names: some build systems require a compiler command of one
/// word, and some look for `nvcc`.
fn driver_of_name(called: &str) -> Option<&str> {
    let name = called.rsplit('/').next()?;
    let driver = name
        .strip_prefix("gradus-")
        .or((name == "nvcc").then_some(name));
    driver.filter(|name| DRIVERS.contains(name))
}

fn run(args: &[OsString]) -> u8 {
    let driver = args
        .first()
        .is_some_and(|word| DRIVERS.iter().any(|name| word == name));
    let (mut session, args) = match Session::begin(args, driver) {
        Ok(begun) => begun,
        Err((session, finding)) => return session.fail(finding),
    };
    signals::install_handlers(&session.settings.leftovers);
    match args.first() {
        Some(word) if word == "bug-report" => {
            bug_report::run(&mut session, &args[1..], &|session, args| {
                command(session, args)
            })
        }
        _ => command(&session, &args),
    }
}

/// Returns true if the usage is requested, for the tool or for a command (the drivers' `--help` is the
/// compiler's).
fn is_help_requested(command: Option<&str>, rest: &[OsString]) -> bool {
    match command {
        Some("--help" | "-h" | "help") => true,
        Some("grad" | "check" | "dev" | "explain" | "install") => {
            let own = rest.iter().take_while(|arg| *arg != "--");
            own.into_iter().any(|arg| arg == "--help" || arg == "-h")
        }
        _ => false,
    }
}

/// Runs a command. Returns the exit status.
fn command(session: &Session, args: &[OsString]) -> u8 {
    let command = args.first().map(|a| a.to_string_lossy().into_owned());
    let rest = args.get(1..).unwrap_or_default();
    if is_help_requested(command.as_deref(), rest) {
        crate::said::out(format_args!("{USAGE}"));
        return 0;
    }
    match command.as_deref() {
        Some("grad") => grad::run(session, rest),
        Some("check") => check::run(session, rest),
        Some("cc") => drivers::run(session, rest, Language::C),
        Some("c++") => drivers::run(session, rest, Language::PlusPlus),
        Some("fc") => drivers::run(session, rest, Language::Fortran),
        Some("nvcc") => drivers::nvcc(session, rest),
        Some("dev") => dev::run(session, rest),
        Some("explain") => explain::run(session, rest),
        Some("install") => install::run(session, rest),
        Some("--version" | "-V") => version::run(&session.settings),
        None => {
            crate::said::err(format_args!("{USAGE}"));
            FAILED
        }
        Some(other) => session.fail(
            gradus::Diagnostic::error(
                gradus::Code::BadOption,
                format!("unknown command `{other}`"),
            )
            .help("`gradus --help` lists the commands"),
        ),
    }
}
