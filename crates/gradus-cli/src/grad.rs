//! `gradus grad`: derivatives of functions by name.

use crate::options::{
    ParserError, allowed, bad_option, option_value, split_at_dashes, split_commas, word_text, words,
};
use crate::said::outln;
use crate::session::{Session, status};
use gradus::Diagnostic;
use gradus::grad::{Emit, Entry, Grad, grad};
use gradus::pipeline::{GradRequest, GradTask, Mode, Options};
use lexopt::Arg::{Long, Short, Value};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the command. Returns the exit status.
pub fn run(session: &Session, args: &[OsString]) -> u8 {
    let what = match parse(args) {
        Ok(what) => what,
        Err(diagnostic) => return session.fail(diagnostic),
    };
    let graded = grad(&session.settings, &what);
    session.show(&graded.diagnostics);
    if let Some(report) = &graded.report {
        crate::said::out(format_args!("{report}"));
    }
    for file in &graded.files {
        outln!("wrote {}", file.display());
    }
    match graded.done {
        true => 0,
        false => status(&graded.diagnostics),
    }
}

/// The parsed options.
#[derive(Default)]
pub struct Asked {
    files: Vec<PathBuf>,
    functions: Vec<String>,
    wrt: Vec<String>,
    modes: Vec<Mode>,
    name: Option<String>,
    with_primal: bool,
    beside: bool,
    inactive: Vec<String>,
    width: u32,
    emit: Option<Emit>,
    entry: Option<Entry>,
    signature: Option<PathBuf>,
    output: Option<PathBuf>,
    options: Options,
}

/// Parses the command line of `gradus grad`.
pub fn parse(args: &[OsString]) -> Result<Grad, Diagnostic> {
    let (own, flags) = split_at_dashes(args);
    let mut asked = Asked::default();
    let mut parser = lexopt::Parser::from_args(own);
    while let Some(arg) = parser.next().map_err(ParserError)? {
        match arg {
            Short('f') | Long("function") => asked.functions.push(option_value(&mut parser)?),
            Long("wrt") => asked.wrt.extend(split_commas(&option_value(&mut parser)?)),
            Long("mode") => asked.modes = modes(&option_value(&mut parser)?)?,
            Long("name") => asked.name = Some(option_value(&mut parser)?),
            Long("with-primal") => asked.with_primal = true,
            Long("beside") => asked.beside = true,
            Long("strong-zero") => asked.options.strong_zero = true,
            Long("allow") => asked
                .options
                .allowed
                .extend(allowed(&option_value(&mut parser)?)?),
            Long("deterministic") => asked.options.deterministic = true,
            Long("inactive") => asked
                .inactive
                .extend(split_commas(&option_value(&mut parser)?)),
            Long("width") => asked.width = width(&option_value(&mut parser)?)?,
            Long("without") => asked
                .options
                .off
                .extend(split_commas(&option_value(&mut parser)?)),
            Long("emit") => asked.emit = Some(emit(&option_value(&mut parser)?)?),
            Long("entry") => asked.entry = Some(entry(&option_value(&mut parser)?)?),
            Long("signature") => asked.signature = Some(option_value(&mut parser)?.into()),
            Short('o') | Long("output") => asked.output = Some(option_value(&mut parser)?.into()),
            Value(file) => asked.files.push(word_text(&file)?.into()),
            other => return Err(ParserError(other.unexpected()).into()),
        }
    }
    asked.finish(words(flags)?)
}

impl Asked {
    fn finish(self, flags: Vec<String>) -> Result<Grad, Diagnostic> {
        if self.files.is_empty() {
            return Err(bad_option("no program is given"));
        }
        if self.functions.is_empty() {
            return Err(bad_option("no function is given: `-f NAME`"));
        }
        let modes = match self.modes.as_slice() {
            [] => &[Mode::Reverse],
            given => given,
        };
        if self.name.is_some() && self.functions.len() * modes.len() > 1 {
            return Err(bad_option(
                "`--name` requires exactly one function and one mode",
            ));
        }
        if self.entry == Some(Entry::Uniform) && self.emit != Some(Emit::Shared) {
            return Err(bad_option("`--entry uniform` requires `--emit shared`"));
        }
        let request = |function: &String, mode: Mode| GradRequest {
            function: function.clone(),
            wrt: self.wrt.clone(),
            mode,
            name: self.name.clone(),
            inactive: self.inactive.clone(),
            width: self.width,
            with_primal: self.with_primal,
        };
        let derivatives = self.functions.iter();
        let derivatives = derivatives.flat_map(|f| modes.iter().map(|mode| request(f, *mode)));
        Ok(Grad {
            task: GradTask {
                derivatives: derivatives.collect(),
                beside: self.beside,
            },
            files: self.files,
            emit: self.emit.unwrap_or(Emit::Object),
            entry: self.entry.unwrap_or_default(),
            signature: self.signature,
            output: self.output,
            flags,
            options: self.options,
        })
    }
}

/// Parses a list of different modes.
fn modes(text: &str) -> Result<Vec<Mode>, Diagnostic> {
    let mut modes = Vec::new();
    for word in text.split(',') {
        let mode = match word {
            "forward" => Mode::Forward,
            "reverse" => Mode::Reverse,
            _ => {
                let message =
                    format!("unknown mode `{word}`: use forward, reverse or reverse,forward");
                return Err(bad_option(message));
            }
        };
        if modes.contains(&mode) {
            return Err(bad_option(format!("the mode `{word}` is given twice")));
        }
        modes.push(mode);
    }
    Ok(modes)
}

fn entry(text: &str) -> Result<Entry, Diagnostic> {
    match text {
        "c" => Ok(Entry::C),
        "uniform" => Ok(Entry::Uniform),
        _ => Err(bad_option(format!(
            "unknown kind of entry `{text}`: use c or uniform"
        ))),
    }
}

fn width(text: &str) -> Result<u32, Diagnostic> {
    let width = text.parse().ok().filter(|w| (1..=64).contains(w));
    width.ok_or_else(|| bad_option(format!("invalid width `{text}`: use 1 to 64")))
}

fn emit(text: &str) -> Result<Emit, Diagnostic> {
    Ok(match text {
        "obj" => Emit::Object,
        "llvm" => Emit::Llvm,
        "bc" => Emit::Bitcode,
        "asm" => Emit::Assembly,
        "gir" => Emit::Gir,
        "header" => Emit::Header,
        "shared" => Emit::Shared,
        _ => {
            let message = format!("unknown output kind `{text}`");
            return Err(bad_option(message)
                .note("the output kinds are obj, llvm, bc, asm, gir, header and shared"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Grad, Diagnostic> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&words)
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
