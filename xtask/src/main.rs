//! Commands of the project: `cargo xtask COMMAND`.
//!
//! The crate is built first, on a machine that may lack LLVM. It imports no crate of the workspace and starts
//! cargo, clang and `gradus` as processes.
#![forbid(unsafe_code)]

mod adbench;
mod area;
mod bare;
mod bench;
mod course;
mod demo;
mod dist;
mod docs;
mod driver_overhead;
mod frameworks;
mod gradus;
mod growth;
mod levels;
mod parallel;
mod process;
mod python;
mod roundtrip;
mod setup;
mod sources;
mod suite;
mod survey;
mod switches;
mod table;
mod tidy;
mod wheel;
mod workspace;

use process::Outcome;
use std::process::ExitCode;

/// Command: name, arguments, summary, and implementation.
struct Command {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Outcome<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        arguments: "[STAGE …]",
        summary: "run checked examples of Gradus on real code",
        run: demo::run,
    },
    Command {
        name: "test",
        arguments: "[NAME | --no-setup]",
        summary: "run all checks (tidy, format, lints, tests), or the tests of one area",
        run: suite::test,
    },
    Command {
        name: "tidy",
        arguments: "[--figures]",
        summary: "check the project rules: layers, sizes, words, prose, imports, commits",
        run: tidy::run,
    },
    Command {
        name: "bless",
        arguments: "[NAME]",
        summary: "rewrite case pages and generated pages of the manual: all, or those of one area",
        run: suite::bless,
    },
    Command {
        name: "python",
        arguments: "[--bench | PYTEST ARGUMENTS …]",
        summary: "build the Python package and run its tests, or measure calls",
        run: python::run,
    },
    Command {
        name: "frameworks",
        arguments: "[torch | tensorflow | numba | jax …]",
        summary: "run the Python package's tests with releases of PyTorch, TensorFlow, Numba and JAX",
        run: frameworks::run,
    },
    Command {
        name: "wheel",
        arguments: "[--from FOLDER]",
        summary: "build the Python package as a wheel, and test the wheel",
        run: wheel::run,
    },
    Command {
        name: "fuzz",
        arguments: "[PROGRAMS [SEED]] | [--ir | --cuda | --mutants] --count N [--seed S]",
        summary: "test every pass and all derivatives with random programs",
        run: suite::fuzz,
    },
    Command {
        name: "bench",
        arguments: "[WORKLOAD …] | --switches | --drivers | --parallel [ROW …]",
        summary: "run the benchmark suite: gradient / primal, hand-written and by Gradus",
        run: bench::run,
    },
    Command {
        name: "adbench",
        arguments: "[DIR] [--tool hand] [--all]",
        summary: "run ADBench's objectives and compare with the reference results",
        run: adbench::run,
    },
    Command {
        name: "survey",
        arguments: "[LIBRARY [FUNCTION …]] [--tool dual]",
        summary: "differentiate every function of unmodified libraries: done, refused, wrong",
        run: survey::run,
    },
    Command {
        name: "roundtrip",
        arguments: "[zlib] [sqlite]",
        summary: "round-trip two libraries through the IR and compare with clang",
        run: roundtrip::run,
    },
    Command {
        name: "levels",
        arguments: "[WORKLOAD …]",
        summary: "check the benchmark suite's derivatives at every optimisation level",
        run: levels::run,
    },
    Command {
        name: "growth",
        arguments: "[PROGRAM …]",
        summary: "measure compile time by program size",
        run: growth::run,
    },
    Command {
        name: "dist",
        arguments: "[--from FOLDER]",
        summary: "build a release: install tree, tarball, Debian package",
        run: dist::run,
    },
    Command {
        name: "bare",
        arguments: "[PACKAGE …]",
        summary: "install every package in a bare Debian system: time to the first gradient, removal",
        run: bare::run,
    },
    Command {
        name: "docs",
        arguments: "",
        summary: "build the manual as a searchable book, and check links and pages",
        run: docs::run,
    },
    Command {
        name: "setup",
        arguments: "",
        summary: "install missing dependencies (clang 22, LLVM 22)",
        run: setup::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|c| c.name == name) else {
        eprint!("unknown command `{name}`\n\n{}", usage());
        return ExitCode::FAILURE;
    };
    match (command.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\n{name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask COMMAND\n\n");
    for c in COMMANDS {
        let call = format!("{} {}", c.name, c.arguments);
        text += &format!("  {call:<40} {}\n", c.summary);
    }
    text
}
