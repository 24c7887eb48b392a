//! `gradus grad`: derivatives of functions by name.

use crate::options::{REPORT_HELP, allowed, bad_option, report, trimmed};
use crate::said::{errln, outln};
use crate::session::{Session, status};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gradus::Diagnostic;
use gradus::files::STDOUT;
use gradus::grad::{Emit, Entry, Grad, grad};
use gradus::pipeline::{Allowance, GradRequest, GradTask, Mode, Options};
use gradus::report::Wanted;
use std::path::{Path, PathBuf};

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, words: Words) -> u8 {
    let what = match words.finish() {
        Ok(what) => what,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let graded = grad(&session.settings, &what);
    session.show(&graded.diagnostics);
    // A document or the derivative on standard output stands alone.
    let on_stdout = what.writes_to_stdout() || what.signature.as_deref() == Some(Path::new(STDOUT));
    match on_stdout {
        true => errln!("{}", graded.report.trim_end()),
        false => crate::said::out(format_args!("{}", graded.report)),
    }
    let to_stderr = on_stdout || what.reports.iter().any(Wanted::is_document_on_stdout);
    for file in graded
        .files
        .iter()
        .filter(|file| *file != Path::new(STDOUT))
    {
        match to_stderr {
            true => errln!("wrote {}", file.display()),
            false => outln!("wrote {}", file.display()),
        }
    }
    match graded.done {
        true => 0,
        false => status(&graded.diagnostics),
    }
}

const EXAMPLES: &str = "\
Examples:
  gradus grad energy.c -f energy --wrt x
  gradus grad energy.c -f energy --wrt x --mode reverse,forward --emit shared -o libenergy.so
  gradus grad energy.c -f energy --report=full --report=json:energy.json
  gradus grad plane.f90 -f energy -o energy.o -- -O3 -fopenmp
  gradus grad path/to/Cargo.toml -f energy --wrt x";

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Words {
    /// The program: C, C++, Fortran, Rust (a file or a Cargo.toml), CUDA or LLVM IR
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The function to differentiate; may be repeated
    #[arg(short, long = "function", required = true, value_name = "NAME")]
    functions: Vec<String>,
    /// The arguments to differentiate with respect to [default: all with floats]
    #[arg(long, value_name = "ARGUMENTS", value_delimiter = ',')]
    wrt: Vec<String>,
    /// Reverse mode (VJP), forward mode (JVP), dependency sets, or several [default: reverse]
    #[arg(long = "mode", value_name = "MODES", value_delimiter = ',', value_parser = modes())]
    modes: Vec<Mode>,
    /// The derivative's symbol [default: NAME_vjp, NAME_jvp or NAME_dep]
    #[arg(long, value_name = "SYMBOL")]
    name: Option<String>,
    /// Return the function's value, too
    #[arg(long)]
    with_primal: bool,
    /// Arguments without a derivative, whatever the function does with them
    #[arg(long, value_name = "ARGUMENTS", value_delimiter = ',')]
    inactive: Vec<String>,
    /// Vector mode: the number of tangents or cotangents per call
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    width: Option<u32>,
    /// Emit the derivatives alone; link the output with the files' own objects
    #[arg(long)]
    beside: bool,
    /// The kind of output; `shared` is a shared library that exports the functions and derivatives only
    #[arg(long, value_name = "KIND", default_value = "obj", value_parser = emits())]
    emit: Emit,
    /// With `--emit shared`: `uniform` also exports `void NAME__u(void **args)` for each function
    #[arg(long, value_name = "KIND", default_value = "c", value_parser = entries())]
    entry: Entry,
    #[arg(long = "report", value_name = "FORM[:FILE]", value_parser = report, help = format!("{REPORT_HELP} [default: short]"))]
    reports: Vec<Wanted>,
    /// Write the signatures of the functions and derivatives as JSON
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
    /// The output; `-` for standard output [default: the first file's name with the extension of the kind]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Define zero times infinity or NaN as zero
    #[arg(long)]
    strong_zero: bool,
    /// Equal bits for any number of threads
    #[arg(long)]
    deterministic: bool,
    /// Accept with a warning: numbers that pass through text or a file, where derivatives end
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = allowed())]
    allow: Vec<Allowance>,
    /// Turn passes off, for tests
    #[arg(long, value_name = "PASSES", value_delimiter = ',')]
    without: Vec<String>,
    /// Flags of the compiler, after `--` [default: -O2]
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

impl Words {
    /// Checks the combination of words.
    fn finish(self) -> Result<Grad, Diagnostic> {
        let modes = match self.modes.as_slice() {
            [] => &[Mode::Reverse],
            given if (1..given.len()).any(|at| given[..at].contains(&given[at])) => {
                return Err(bad_option("`--mode` names a mode twice"));
            }
            given => given,
        };
        if self.name.is_some() && self.functions.len() * modes.len() > 1 {
            return Err(bad_option(
                "`--name` requires exactly one function and one mode",
            ));
        }
        if self.entry == Entry::Uniform && self.emit != Emit::Shared {
            return Err(bad_option("`--entry uniform` requires `--emit shared`"));
        }
        let is_stdout = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new(STDOUT));
        let documents = self
            .reports
            .iter()
            .filter(|wanted| wanted.is_document_on_stdout());
        let outputs = [&self.output, &self.signature]
            .into_iter()
            .filter(|file| is_stdout(file));
        if outputs.count() + documents.count() > 1 {
            let message = "standard output takes one of `-o -`, `--signature -` and a report";
            return Err(bad_option(message));
        }
        let request = |function: &String, mode: Mode| GradRequest {
            function: function.clone(),
            wrt: trimmed(&self.wrt),
            mode,
            name: self.name.clone(),
            inactive: trimmed(&self.inactive),
            width: self.width.unwrap_or_default(),
            with_primal: self.with_primal,
        };
        let derivatives = self.functions.iter();
        let derivatives = derivatives.flat_map(|f| modes.iter().map(|mode| request(f, *mode)));
        Ok(Grad {
            task: GradTask {
                derivatives: derivatives.collect(),
                beside: self.beside,
            },
            files: self.files.iter().map(PathBuf::from).collect(),
            emit: self.emit,
            entry: self.entry,
            signature: self.signature,
            output: self.output,
            reports: match self.reports.is_empty() {
                true => vec![Wanted::short()],
                false => self.reports,
            },
            flags: self.flags,
            options: Options {
                strong_zero: self.strong_zero,
                deterministic: self.deterministic,
                allowed: self.allow,
                off: trimmed(&self.without),
                ..Options::default()
            },
        })
    }
}

/// Returns the parser of one of the names of a table.
fn one_of<T: Copy + Send + Sync + 'static>(
    table: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = table.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names).map(|given| {
        let found = table.iter().find(|(name, _)| *name == given);
        let Some((_, value)) = found else {
            unreachable!("the parser accepts names of the table only");
        };
        *value
    })
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    one_of(&[
        ("reverse", Mode::Reverse),
        ("forward", Mode::Forward),
        ("dependencies", Mode::Dependencies),
    ])
}

fn entries() -> impl TypedValueParser<Value = Entry> {
    one_of(&[("c", Entry::C), ("uniform", Entry::Uniform)])
}

fn emits() -> impl TypedValueParser<Value = Emit> {
    one_of(&[
        ("obj", Emit::Object),
        ("llvm", Emit::Llvm),
        ("bc", Emit::Bitcode),
        ("asm", Emit::Assembly),
        ("gir", Emit::Gir),
        ("header", Emit::Header),
        ("shared", Emit::Shared),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{Parsed, Word};
    use std::ffi::OsString;

    fn asked(line: &str) -> Result<Grad, Diagnostic> {
        let words = std::iter::once("grad").chain(line.split_whitespace());
        let words: Vec<OsString> = words.map(OsString::from).collect();
        match crate::command_line::parse(&words)? {
            Parsed::Run(word) => match word {
                Word::Grad(words) => words.finish(),
                other => unreachable!("{other:?} is another command"),
            },
            other => unreachable!("{other:?} is no command"),
        }
    }

    #[test]
    fn a_full_command_line_is_understood() {
        let line =
            "e.c -f energy --wrt x,y --mode forward --emit asm --with-primal -o e.s -- -O3 -DN=2";
        let grad = asked(line).expect("understood");
        assert_eq!(grad.files, [PathBuf::from("e.c")]);
        assert_eq!(grad.task.derivatives[0].function, "energy");
        assert_eq!(grad.task.derivatives[0].wrt, ["x", "y"]);
        assert_eq!(grad.task.derivatives[0].mode, Mode::Forward);
        assert!(grad.task.derivatives[0].with_primal);
        assert_eq!(
            (grad.emit, grad.flags),
            (Emit::Assembly, vec!["-O3".to_string(), "-DN=2".into()])
        );
    }

    #[test]
    fn a_program_may_have_several_files() {
        let grad = asked("e.c -f f part.f90 more.bc -- -O1").expect("understood");
        let names: Vec<_> = grad
            .files
            .iter()
            .map(|file| file.to_string_lossy())
            .collect();
        assert_eq!(names, ["e.c", "part.f90", "more.bc"]);
        assert_eq!(grad.flags, ["-O1"]);
    }

    #[test]
    fn wrong_command_lines_are_findings() {
        for line in [
            "",
            "e.c",
            "-f f",
            "e.c -f f --mode up",
            "e.c g.c -f f --emit exe",
            "e.c -f f --nothing",
            "e.c -f f -f g --name h",
            "e.c -f f --mode reverse,forward --name h",
            "e.c -f f --mode reverse,reverse",
            "e.c -f f --entry uniform",
            "e.c -f f --emit shared --entry fast",
            "e.c -f f --report=long",
            "e.c -f f --report=json:",
            "e.c -f",
        ] {
            assert_eq!(
                asked(line).expect_err(line).code,
                gradus::Code::BadOption,
                "{line}"
            );
        }
    }
}
