//! The jobs of a clang driver for a command line, as printed by `-###`.
//!
//! The driver knows languages, search paths, defaults and linkers; parsing its jobs avoids a copy of that
//! knowledge. Intermediate files of jobs are moved to a scratch folder.

use crate::files::{self, Content, Outputs, Scratch};
use crate::settings::Settings;
use gradus_ir::{Code, Diagnostic};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The program.
    pub program: PathBuf,
    /// The arguments.
    pub args: Vec<String>,
}

impl Job {
    /// Returns the value of option `name`, given as the next argument.
    pub fn value(&self, name: &str) -> Option<&str> {
        let at = self.args.iter().position(|a| a == name)?;
        self.args.get(at + 1).map(String::as_str)
    }
    /// Returns true if the job compiles C, C++, Fortran or IR for the host to machine code or LLVM IR.
    pub fn is_compilation(&self) -> bool {
        let emits = ["-emit-obj", "-S", "-emit-llvm", "-emit-llvm-bc"];
        let language = self.value("-x").unwrap_or_default();
        let language = language.strip_suffix("-cpp-output").unwrap_or(language);
        let languages: &[&str] = match self.args.first().map(String::as_str) {
            Some("-cc1") => &["c", "c++", "cpp-output", "ir"],
            Some("-fc1") => &["f95", "f95-cpp-input", "ir"],
            _ => &[],
        };
        languages.contains(&language)
            && self.args.iter().any(|a| emits.contains(&a.as_str()))
            && !self.args.iter().any(|a| a == "-fcuda-is-device")
    }
    /// Returns the output path.
    pub fn output(&self) -> Option<&str> {
        self.value("-o")
    }
    /// Returns the file to compile: the last argument of a compilation.
    pub fn input(&self) -> Option<&str> {
        self.args.last().map(String::as_str)
    }
    /// Returns a command that runs the job.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command
    }
}

/// The plan of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The jobs in order.
    pub jobs: Vec<Job>,
    /// Messages about the command line.
    pub remarks: Vec<String>,
    /// True if the driver accepts the command line.
    pub ok: bool,
}

/// Queries `driver` for its plan; the settings' environment affects the jobs.
///
/// # Errors
/// `ToolFailed` if the driver cannot be run.
pub fn query(settings: &Settings, driver: &Path, args: &[String]) -> Result<Plan, Diagnostic> {
    query_in(settings, driver, args, None)
}

/// Like [`query`], in a folder.
///
/// # Errors
/// `ToolFailed` if the driver cannot be run.
pub(crate) fn query_in(
    settings: &Settings,
    driver: &Path,
    args: &[String],
    folder: Option<&Path>,
) -> Result<Plan, Diagnostic> {
    let mut command = Command::new(driver);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let output = command
        .arg("-###")
        .args(args)
        .envs(
            settings
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .stdin(Stdio::null())
        .output()
        .map_err(|e| {
            let message = format!("cannot run {}: {e}", driver.display());
            Diagnostic::error(Code::ToolFailed, message).help(
                match settings.flang.as_deref() == Some(driver) {
                    true => "install flang-22, or set GRADUS_FLANG to a Fortran compiler",
                    false => "install clang-22, or set GRADUS_CLANG to a compiler",
                },
            )
        })?;
    let mut plan = read(&String::from_utf8_lossy(&output.stderr));
    plan.ok = output.status.success();
    Ok(plan)
}

/// Parses the output of `-###`.
fn read(text: &str) -> Plan {
    let mut plan = Plan::default();
    for line in text.lines() {
        if line.starts_with(" \"") {
            let mut words = words(line).into_iter();
            plan.jobs.extend(words.next().map(|program| Job {
                program: program.into(),
                args: words.collect(),
            }));
        } else if line.contains(": warning: ")
            || line.contains(": error: ")
            || line.contains(": note: ")
        {
            plan.remarks.push(line.to_string());
        }
    }
    plan
}

/// Returns the quoted words of a line; `\` escapes `"`, `\` and `$`.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (&mut word, c) {
            (None, '"') => word = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => words.extend(word.take()),
            (Some(text), '\\') => text.extend(chars.next()),
            (Some(text), c) => text.push(c),
        }
    }
    words
}

impl Plan {
    /// Moves files passed between jobs into a scratch folder.
    pub fn move_intermediates(&mut self, scratch: &Scratch) {
        let mut moved: HashMap<String, String> = HashMap::new();
        for (at, job) in self.jobs.iter().enumerate() {
            let Some(output) = job.output() else {
                continue;
            };
            let later = self.jobs[at + 1..].iter();
            if later.clone().any(|j| j.args.iter().any(|a| a == output)) {
                let name = Path::new(output).file_name().unwrap_or_default();
                let name = format!("{at}-{}", name.to_string_lossy());
                let to = scratch.file(&name).display().to_string();
                moved.insert(output.to_string(), to);
            }
        }
        for arg in self.jobs.iter_mut().flat_map(|job| &mut job.args) {
            if let Some(to) = moved.get(arg) {
                arg.clone_from(to);
            }
        }
    }

    /// Moves the user's outputs into the scratch folder too. Returns their destinations. Standard output
    /// and devices stay.
    pub fn move_outputs(&mut self, scratch: &Scratch) -> Outputs {
        let mut outputs = Outputs::default();
        for (at, job) in self.jobs.iter_mut().enumerate() {
            for (kind, option) in OUTPUTS.iter().enumerate() {
                let place = job.args.iter().position(|a| a == option);
                let Some(word) = place.and_then(|place| job.args.get_mut(place + 1)) else {
                    continue;
                };
                let path = PathBuf::from(&*word);
                if word == "-" || scratch.holds(&path) || files::is_special_file(&path) {
                    continue;
                }
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let inside = scratch.file(&format!("{at}.{kind}-{name}"));
                *word = inside.display().to_string();
                outputs.add(&path, Content::File(inside));
            }
        }
        outputs
    }
}

/// The options of jobs that name an output file.
const OUTPUTS: [&str; 3] = ["-o", "-dependency-file", "-split-dwarf-output"];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "clang version 22\nTarget: x\n (in-process)\nclang: warning: odd\n \
        \"/bin/clang\" \"-cc1\" \"-emit-obj\" \"-D\" \"A=\\\"q\\\"\" \"-o\" \"/t/a b.o\" \"-x\" \"c\" \"a.c\"\n \
        \"/bin/ld\" \"-o\" \"a.out\" \"/t/a b.o\"\n";

    #[test]
    fn jobs_and_remarks_are_told_apart() {
        let plan = read(TEXT);
        assert_eq!(plan.remarks, ["clang: warning: odd"]);
        assert_eq!(plan.jobs.len(), 2);
        assert!(plan.jobs[0].is_compilation() && !plan.jobs[1].is_compilation());
        assert_eq!(plan.jobs[0].args[3], "A=\"q\"");
        assert_eq!(plan.jobs[0].input(), Some("a.c"));
        assert_eq!(plan.jobs[1].output(), Some("a.out"));
    }

    #[test]
    fn only_files_between_jobs_move() {
        let scratch =
            Scratch::new(&std::env::temp_dir(), &crate::TempFolders::default()).expect("a folder");
        let mut plan = read(TEXT);
        plan.move_intermediates(&scratch);
        let moved = plan.jobs[0].output().expect("an output").to_string();
        assert!(moved.ends_with("0-a b.o") && moved != "/t/a b.o");
        assert_eq!(plan.jobs[1].args[2], moved);
        assert_eq!(plan.jobs[1].output(), Some("a.out"));
        let outputs = plan.move_outputs(&scratch);
        assert_eq!(outputs.paths(), [Path::new("a.out")]);
        assert_eq!(plan.jobs[0].output(), Some(moved.as_str()));
        let inside = Path::new(plan.jobs[1].output().expect("an output"));
        assert!(scratch.holds(inside));
    }
}
