//! The command line of `gradus` as a tree of commands: parser, help pages, completions and manual pages have this one
//! source. The drivers parse their own command lines ([`crate::drivers`]); the tree describes them for help only.

use crate::options::{REPORT_HELP, bad_option, words};
use crate::{bug_report, check, dev, explain, grad, install, uninstall};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use gradus::Diagnostic;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const EXIT_STATUS: &str = "\
Exit status: 0 success, 1 error or refusal, 3 limit reached; the drivers pass on the compiler's status.
`gradus help COMMAND` explains a command with examples, `gradus explain CODE` a diagnostic.";

/// Automatic differentiation for existing C, C++, Fortran, Rust and CUDA code.
#[derive(Debug, Parser)]
#[command(name = "gradus", after_help = EXIT_STATUS, disable_version_flag = true)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Word,
    /// Print the versions of Gradus, LLVM, clang and flang
    #[arg(short = 'V', long)]
    version: bool,
    #[command(flatten)]
    common: Common,
}

/// The options of every command; [`crate::session`] takes them out of the command line before the parser runs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command (for the drivers in one word, with `=`)")]
struct Common {
    /// Form of diagnostics: json prints one object per line, in rustc's format
    #[arg(long, global = true, value_name = "FORMAT", value_parser = ["human", "json"])]
    message_format: Option<String>,
    /// Write all diagnostics of the run to a file, as a SARIF log
    #[arg(long, global = true, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Show the phase and the function in work: auto does so on a terminal, after two seconds
    #[arg(long, global = true, value_name = "WHEN", value_parser = ["auto", "always", "never"])]
    progress: Option<String>,
    /// Time limit of each compilation [default: 3600]
    #[arg(long, global = true, value_name = "SECONDS")]
    max_time: Option<String>,
    /// Memory limit of each compilation and of a check's program, such as 500M [default: 16G]
    #[arg(long, global = true, value_name = "SIZE")]
    max_memory: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Word {
    /// Write an object with a program's code and derivatives, a C header and a report
    Grad(Box<grad::Words>),
    /// Test a derivative: compare forward mode, reverse mode and finite differences
    Check(Box<check::Words>),
    /// Compile C like clang, with derivative calls and parallel code
    Cc(Driver),
    /// Compile C++ like clang++, with derivative calls and parallel code
    #[command(name = "c++")]
    PlusPlus(Driver),
    /// Compile Fortran like flang, with derivative calls and parallel code
    Fc(Driver),
    /// Compile CUDA programs for CPUs, with nvcc's command line
    Nvcc(CudaDriver),
    /// Run Cargo on a crate with derivative requests, as `cargo gradus`
    Cargo(CargoWords),
    /// Run the passes on a program, and print the IR and the time of each pass
    Dev(dev::Words),
    /// Explain a diagnostic, or list all
    Explain(explain::Words),
    /// Install the command, headers, run-time library, CMake and pkg-config files below a folder
    Install(install::Words),
    /// Remove the files that `gradus install` wrote below a folder
    Uninstall(uninstall::Words),
    /// Print the completions of a shell
    Completions(Completions),
    /// Run a command, and pack compiled modules, flags and versions into an archive
    BugReport(bug_report::Words),
}

impl Word {
    /// Returns the driver of a name; the driver parses the command line.
    pub fn driver(name: &str) -> Word {
        match name {
            "cc" => Word::Cc(Driver::default()),
            "c++" => Word::PlusPlus(Driver::default()),
            "fc" => Word::Fc(Driver::default()),
            _ => Word::Nvcc(CudaDriver::default()),
        }
    }
}

/// Arguments of the drivers, for the help page.
#[derive(Args, Debug, Default)]
#[command(
    disable_help_flag = true,
    after_help = "All other options are the compiler's; `--help` is the compiler's, too.\n\n\
                  Examples:\n  gradus cc -O2 main.c energy.c -o demo\n  gradus cc -fopenmp --report=full -c loops.c\n  \
                  CC=gradus-cc cmake -S . -B build"
)]
pub struct Driver {
    /// Arguments of the compiler, and response files (@FILE)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    own: DriverOptions,
    /// Code for parallel regions: Gradus's pool, the threads of the OpenMP library, or LLVM IR with parallel intrinsics
    #[arg(long, value_name = "TARGET", value_parser = ["runtime", "openmp", "intrinsics"])]
    par_target: Option<String>,
    /// Send every function through the IR and back: a self-test
    #[arg(long)]
    restructure_all: bool,
}

/// Arguments of `cargo gradus`, for the help page.
#[derive(Args, Debug, Default)]
#[command(
    after_help = "All options are Cargo's. The files are below `target/gradus`.\n\n\
                  Examples:\n  cargo gradus build --release\n  cargo gradus run\n  cargo gradus test\n  \
                  cargo gradus check"
)]
pub struct CargoWords {
    /// A command of Cargo (build, check, test, run, bench, clippy, doc, nextest) with options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Arguments of the driver for CUDA, for the help page.
#[derive(Args, Debug, Default)]
#[command(
    disable_help_flag = true,
    after_help = "All other options are nvcc's.\n\n\
                  Examples:\n  gradus nvcc -O2 saxpy.cu -o saxpy\n  CUDACXX=gradus-nvcc cmake -S . -B build"
)]
pub struct CudaDriver {
    /// Arguments of nvcc, and response files (@FILE)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Report every kernel: barriers, values saved across barriers, vectorised loops
    #[arg(long)]
    gpu_report: bool,
    #[command(flatten)]
    own: DriverOptions,
}

/// Options of all drivers, for the help pages.
#[derive(Args, Debug, Default)]
struct DriverOptions {
    /// Report the outcome of every parallel region and loop, by source line
    #[arg(long)]
    par_report: bool,
    #[arg(long = "report", value_name = "FORM[:FILE]", require_equals = true, num_args = 0..=1, help = format!("{REPORT_HELP} [without FORM: short]"))]
    reports: Vec<String>,
    /// Equal bits for any number of threads
    #[arg(long)]
    deterministic: bool,
    /// Define zero times infinity or NaN as zero in derivatives
    #[arg(long)]
    strong_zero: bool,
    /// Accept with a warning: text-round-trip, numbers that pass through text, where derivatives end
    #[arg(long, value_name = "NAMES")]
    allow: Vec<String>,
    /// Turn passes off, for tests
    #[arg(long, value_name = "PASSES")]
    gradus_without: Vec<String>,
}

/// Arguments of `gradus completions`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  gradus completions bash > ~/.local/share/bash-completion/completions/gradus"
)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// The outcome of parsing.
#[derive(Debug)]
pub enum Parsed {
    /// Run this command.
    Run(Word),
    /// Print a help page.
    Help(String),
    /// No command is given: print the help page as an error.
    NoCommand(String),
}

/// Parses a command line without the program's name.
///
/// # Errors
/// `BadOption`, with the nearest name.
pub fn parse(args: &[OsString]) -> Result<Parsed, Diagnostic> {
    let line = std::iter::once("gradus".to_string()).chain(words(args)?);
    match CommandLine::try_parse_from(line) {
        Ok(parsed) => Ok(Parsed::Run(parsed.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => Ok(Parsed::Help(error.render().to_string())),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if args.is_empty() => {
                Ok(Parsed::NoCommand(error.render().to_string()))
            }
            _ => Err(finding(&error, args)),
        },
    }
}

/// Returns the diagnostic of a parser's error: the error's first paragraph, and the nearest name as help.
fn finding(error: &clap::Error, args: &[OsString]) -> Diagnostic {
    let text = error.render().to_string().replace('\'', "`");
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let details = lines
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let (tips, named): (Vec<&str>, Vec<&str>) = details
        .filter(|line| !line.is_empty())
        .partition(|line| line.starts_with("tip: "));
    let mut diagnostic = match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<String> = named.iter().map(|line| format!("`{line}`")).collect();
            bad_option(format!("required: {}", missing.join(", ")))
        }
        _ => (named.iter()).fold(bad_option(message), |finding, line| {
            finding.note(line.to_string())
        }),
    };
    let suggested = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    let tip = suggested.iter().find_map(|kind| error.get(*kind));
    let tip = tip
        .and(tips.first())
        .and_then(|tip| tip.strip_prefix("tip: "));
    let tool = CommandLine::command();
    let command = args.first().and_then(|word| tool.find_subcommand(word));
    let near = nearest_option(error, command.unwrap_or(&tool));
    let near = near.or_else(|| compiler_flag(error));
    diagnostic.help = Some(match (near.or(tip.map(String::from)), command) {
        (Some(tip), _) => tip,
        (None, Some(command)) => {
            let name = command.get_name();
            format!("`gradus help {name}` lists the options, with examples")
        }
        (None, None) => "`gradus --help` lists the commands".to_string(),
    });
    diagnostic
}

/// Returns a hint at the place of the compiler's flags for an unknown option of one dash.
fn compiler_flag(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        // Not an error: another kind of mistake.
        return None;
    };
    let is_flag = error.kind() == ErrorKind::UnknownArgument
        && unknown.starts_with('-')
        && !unknown.starts_with("--");
    is_flag.then(|| "flags of the compiler follow `--`: `-- -O3 -I include`".to_string())
}

/// Returns a hint at the option nearest to an unknown one: at most two letters differ, or are swapped. The parser's own
/// measure prefers a common beginning.
fn nearest_option(error: &clap::Error, command: &clap::Command) -> Option<String> {
    const DISTANCE_MAX: usize = 2;
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) => unknown.strip_prefix("--"),
        _ => None,
    }?;
    let names = command.get_arguments().filter_map(clap::Arg::get_long);
    let distances = names.map(|name| (strsim::damerau_levenshtein(unknown, name), name));
    let (distance, name) = distances.min()?;
    (distance <= DISTANCE_MAX && error.kind() == ErrorKind::UnknownArgument)
        .then(|| format!("a similar argument exists: `--{name}`"))
}

/// Returns the completions of a shell.
pub fn completions_of(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "gradus", &mut text);
    text
}

/// Files of completions in an installation.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/gradus"),
    (Shell::Zsh, "share/zsh/site-functions/_gradus"),
    (Shell::Fish, "share/fish/vendor_completions.d/gradus.fish"),
];

/// Returns manual pages and completions, by path below the prefix of an installation. The tool and each command have
/// a page.
pub fn installed_files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut tool = CommandLine::command();
    tool.build();
    let commands = tool.get_subcommands().filter(|c| c.get_name() != "help");
    let commands = commands.map(|command| {
        let name = format!("gradus-{}", command.get_name());
        command.clone().name(name.clone()).display_name(name)
    });
    let pages = std::iter::once(tool.clone())
        .chain(commands)
        .map(|command| {
            let path = Path::new("share/man/man1").join(format!("{}.1", command.get_name()));
            let mut text = Vec::new();
            if let Err(error) = clap_mangen::Man::new(command).render(&mut text) {
                unreachable!("memory accepts all text: {error}");
            }
            (path, text)
        });
    let completions = COMPLETIONS.iter();
    let completions =
        completions.map(|(shell, path)| (PathBuf::from(path), completions_of(*shell)));
    pages.chain(completions).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Diagnostic {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args).expect_err(line)
    }

    #[test]
    fn the_tree_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn near_matches_are_named() {
        for (line, near) in [
            ("gard e.c -f f", "`grad`"),
            ("grad e.c -f f --wtr x", "`--wrt`"),
            ("grad e.c -f f --emit shard", "`shared`"),
            ("check e.c -f f --inactiv x", "`--inactive`"),
            ("explian 5", "`explain`"),
            ("grad e.c -f f -O3", "follow `--`"),
        ] {
            let finding = refused(line);
            assert!(
                finding
                    .help
                    .as_deref()
                    .is_some_and(|help| help.contains(near)),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn missing_arguments_are_named() {
        let finding = refused("grad e.c");
        assert_eq!(finding.message, "required: `--function <NAME>`");
        let help = finding.help.as_deref();
        assert_eq!(
            help,
            Some("`gradus help grad` lists the options, with examples")
        );
    }

    #[test]
    fn every_command_has_a_manual_page_with_an_example() {
        let files = installed_files();
        let pages = files
            .iter()
            .filter(|(path, _)| path.starts_with("share/man"));
        assert!(pages.clone().count() > 10);
        for (path, text) in pages {
            let text = String::from_utf8_lossy(text);
            assert!(text.contains(".SH SYNOPSIS"), "{path:?}");
            let tool = path.ends_with("gradus.1");
            assert!(tool || text.contains("Example"), "{path:?}");
        }
    }
}
