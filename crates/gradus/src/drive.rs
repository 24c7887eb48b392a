//! The drop-in drivers: everything that clang and flang do, and in modules that call the differentiation
//! interface our passes between its two halves.
//!
//! Flow: ask the driver for its plan; run its jobs in order. A compilation first runs its front
//! half alone; where the bitcode names no differentiation call, the user's own job runs as it is.
//! What the jobs leave for the user goes into a scratch folder first and out of it in one go, when all
//! have succeeded: a run that fails leaves nothing.
//! A link looks for calls that the compilations had to leave ([`crate::link`]); where there is no
//! link, objects carry what a later one needs ([`crate::fat`]).

use crate::cc1::{self, Detail, Halves};
use crate::fat::{self, Carried};
use crate::files::{self, Scratch};
use crate::plan::{self, Job};
use crate::{Language, Settings, child, link, runtime, source, words};
use gradus_ir::{Code, Diagnostic, Severity};
use gradus_pipeline::{
    CallsTask, Input, Level, Options, Outcome, OutputKind, ParallelTarget, Reply, Request, Task,
};
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// What a driver is asked for beside its compiler's own options.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// The language of the driver.
    pub language: Language,
    /// Whether every function goes through the language in the middle and back.
    pub restructure_all: bool,
    /// Whether the compiler's vectoriser is asked what it made of kernels' loops.
    pub kernel_report: bool,
    /// Options of the passes.
    pub options: Options,
}

/// What a driver run came to.
#[derive(Clone, Debug, Default)]
pub struct Driven {
    /// The exit status to pass on.
    pub status: i32,
    /// What the compiler said, in whole lines.
    pub remarks: Vec<String>,
    /// Findings of ours.
    pub diagnostics: Vec<Diagnostic>,
    /// Reports of the modules that went through our passes.
    pub reports: Vec<String>,
    /// What became of the parallel regions of each module.
    pub regions: Vec<String>,
    /// What became of the kernels of each module.
    pub kernels: Vec<String>,
}

/// Runs a driver's command line.
pub fn drive(settings: &Settings, how: &DriveOptions, args: &[String]) -> Driven {
    let mut driven = Driven::default();
    if let Err(diagnostic) = run(settings, how, args, &mut driven) {
        driven.diagnostics.push(diagnostic);
        driven.status = 1;
    }
    // With LTO, files hold parallel code that is lowered already.
    let optimises = |arg: &String| arg == "-flto" || arg.starts_with("-flto=");
    if driven.status != 0 && args.iter().any(optimises) {
        let unseen = driven.diagnostics.iter_mut();
        let unseen = unseen.filter(|d| d.code == Code::UnknownCallee);
        unseen.for_each(advise_without_flto);
    }
    let limit = |d: &Diagnostic| d.severity == Severity::Error && d.code == Code::LimitReached;
    if driven.status != 0 && driven.diagnostics.iter().any(limit) {
        driven.status = LIMIT;
    }
    driven
}

/// The exit status where a limit of ours was reached.
const LIMIT: i32 = 3;

fn run(
    settings: &Settings,
    how: &DriveOptions,
    args: &[String],
    driven: &mut Driven,
) -> Result<(), Diagnostic> {
    let compiler = settings.compiler(how.language)?;
    let (args, notes) = words::without_plugins(args);
    driven.diagnostics.extend(notes);
    let args = &[args, settings.words(how.language)].concat();
    let mut plan = plan::ask(settings, &compiler, args)?;
    let only_asked = args.iter().any(|arg| arg == "-###");
    let ours = |job: &Job| job.is_compilation() || is_link(job);
    if only_asked || !plan.ok || !plan.jobs.iter().any(ours) {
        let mut args = args.to_vec();
        if plan.ok && plan.jobs.iter().any(reads_source) {
            args.insert(0, format!("-D{OURS}"));
        }
        let whole = Job {
            program: compiler,
            args,
        };
        let mut command = whole.command();
        command.envs(
            settings
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        let status = command.status().map_err(|e| cannot_run(&whole, &e))?;
        driven.status = exit_code(&whole.program, &status, &[])?;
        return Ok(());
    }
    driven.remarks = plan.remarks.drain(..).map(|line| line + "\n").collect();
    let scratch = settings.scratch()?;
    plan.move_intermediates(&scratch);
    let outputs = plan.move_outputs(&scratch);
    let typed = match plan.jobs.iter().any(reads_standard_input) {
        true => Some(keep_standard_input(&scratch)?),
        false => None,
    };
    let mut session = Session {
        settings,
        how,
        scratch,
        typed,
        driven,
        compiled: HashMap::new(),
        compiler,
    };
    for job in plan.jobs.iter_mut().filter(|job| reads_source(job)) {
        name_ourselves(job);
    }
    let links = plan.jobs.iter().any(is_link);
    for (at, job) in plan.jobs.iter().enumerate() {
        let before = session.driven.diagnostics.len();
        let status = match job {
            _ if job.is_compilation() => session.compile(at, job)?,
            _ if is_link(job) => session.link(job)?,
            _ => status(job)?,
        };
        session.driven.status = status;
        if status != 0 {
            if job.is_compilation() {
                session.forget_notes(before);
            }
            return Ok(());
        }
    }
    if !links {
        session.attach()?;
    }
    outputs.commit(&settings.leftovers)
}

/// What tells a source that the compiler is ours: `gradus/parallel.h` asks.
const OURS: &str = "__GRADUS__=1";

/// Whether a job reads C or C++ for this machine, to compile it or only to put its text together.
fn reads_source(job: &Job) -> bool {
    let ours = job.args.first().is_some_and(|first| first == "-cc1");
    let device = job.args.iter().any(|arg| arg == "-fcuda-is-device");
    ours && !device && matches!(job.value("-x"), Some("c" | "c++"))
}

fn name_ourselves(job: &mut Job) {
    let at = job.args.len().min(1);
    let words = ["-D", OURS].map(String::from);
    job.args.splice(at..at, words);
}

/// Whether a compilation is asked for LLVM's IR.
fn emits_llvm(job: &Job) -> bool {
    let kinds = ["-emit-llvm", "-emit-llvm-bc"];
    job.args.iter().any(|arg| kinds.contains(&arg.as_str()))
}

/// Returns true if a compilation makes bitcode for LTO: such files carry nothing. A file whose derivatives wait for
/// a link becomes an ordinary object.
fn for_optimising_link(job: &Job) -> bool {
    let mut options = job.args.iter();
    options.any(|arg| arg == "-flto" || arg.starts_with("-flto="))
}

/// Returns true if a compilation leaves bitcode in place of an object, and an object would do as well.
fn makes_bitcode_object(job: &Job) -> bool {
    let emits = job.args.iter().any(|arg| arg == "-emit-llvm-bc");
    emits && job.output().is_some_and(|output| output.ends_with(".o"))
}

/// Says what to do where a derivative needs other files and the link optimises.
fn advise_without_flto(finding: &mut Diagnostic) {
    let help = "compile this file and those that it needs without `-flto`: objects that are not for a link that \
                optimises carry what a derivative across files takes";
    if finding.severity == Severity::Error {
        finding.help = Some(help.to_string());
    }
}

/// Whether a job is the linker's.
fn is_link(job: &Job) -> bool {
    let compiles = ["-cc1", "-cc1as", "-fc1"];
    let first = job.args.first();
    first.is_none_or(|word| !compiles.contains(&word.as_str()))
        && job.output().is_some()
        && job
            .args
            .iter()
            .any(|a| a.ends_with("crt1.o") || a.ends_with("crti.o") || a == "-shared")
}

/// The signal of a program that prints to a pipe which nobody reads.
const BROKEN_PIPE: i32 = 13;

/// A driver at work.
struct Session<'a> {
    settings: &'a Settings,
    how: &'a DriveOptions,
    scratch: Scratch,
    /// What came by standard input, where that is a source.
    typed: Option<PathBuf>,
    driven: &'a mut Driven,
    /// The objects made, and what they would carry.
    compiled: HashMap<PathBuf, Carried>,
    /// The program that compiles.
    compiler: PathBuf,
}

/// Runs a job with our own input and output; gives its exit status.
fn status(job: &Job) -> Result<i32, Diagnostic> {
    let status = job.command().status().map_err(|e| cannot_run(job, &e))?;
    exit_code(&job.program, &status, &[])
}

/// Whether a compilation's source comes by standard input.
fn reads_standard_input(job: &Job) -> bool {
    job.is_compilation() && job.input() == Some("-")
}

/// Keeps what comes by standard input: a source is read by more than one job.
fn keep_standard_input(scratch: &Scratch) -> Result<PathBuf, Diagnostic> {
    let kept = scratch.file("typed");
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|e| {
        let message = format!("cannot read standard input: {e}");
        Diagnostic::error(Code::FileAccess, message)
    })?;
    files::write(&kept, &bytes)?;
    Ok(kept)
}

fn cannot_run(job: &Job, error: &std::io::Error) -> Diagnostic {
    let message = format!("cannot run {}: {error}", job.program.display());
    Diagnostic::error(Code::ToolFailed, message)
}

/// The exit status of a program, which the driver's own will be; a signal is a finding, but where nobody reads on
/// what the program prints.
fn exit_code(program: &Path, status: &ExitStatus, said: &[u8]) -> Result<i32, Diagnostic> {
    if status.signal() == Some(BROKEN_PIPE) {
        return Ok(128 + BROKEN_PIPE);
    }
    match source::died(program, status, said) {
        Some(died) => Err(died),
        None => Ok(status.code().unwrap_or(1)),
    }
}

impl Session<'_> {
    /// A compilation; gives its exit status.
    fn compile(&mut self, at: usize, job: &Job) -> Result<i32, Diagnostic> {
        self.compiler.clone_from(&job.program);
        if self.how.options.target == ParallelTarget::Words && !emits_llvm(job) {
            let message =
                "words of `gradus/parallel.h` are LLVM's IR, and code of a machine is asked for";
            let finding = Diagnostic::error(Code::BadOption, message);
            return Err(
                finding.help("give `-c -emit-llvm`, and compile what comes of it by `gradus cc`")
            );
        }
        let bitcode = self.scratch.file(&format!("{at}.bc"));
        let derived = self.scratch.file(&format!("{at}.derived.bc"));
        let mut halves = cc1::halves(job, &bitcode, &derived, Detail::Lines);
        words::list_files(&mut halves.front, &bitcode);
        let mut front = halves.front.command();
        let front = (front.stdin(self.input_of(&halves.front)?).output())
            .map_err(|e| cannot_run(&halves.front, &e))?;
        let code = exit_code(&job.program, &front.status, &front.stderr)?;
        let mut said = String::from_utf8_lossy(&front.stderr).into_owned();
        if code != 0 {
            self.driven.remarks.push(said);
            return Ok(code);
        }
        let mut typed = halves.front.clone();
        if let (Some(kept), Some(last)) = (&self.typed, typed.args.last_mut())
            && last == "-"
        {
            *last = kept.display().to_string();
        }
        let mut settled = words::settle(self.settings, &typed, &bitcode, &self.scratch)?;
        let bytes = std::mem::take(&mut settled.module);
        let plain = match settled.said.take() {
            Some(new) => {
                said = new;
                words::without_remarks(job)
            }
            None => job.clone(),
        };
        if job.args.iter().any(|a| a == "-emit-obj") {
            self.carry(job, &halves.back, bytes.clone());
        }
        let derives = names_a_derivative(&bytes);
        let optimises = derives || halves.level != Level::O0;
        let parallel = has_markers(&bytes) || optimises && calls_openmp(&bytes);
        if !self.how.restructure_all && !parallel && !derives {
            // Says again what its front half said.
            return self.as_it_is(&plain);
        }
        let name = job.input().unwrap_or_default();
        let mut plain = plain;
        let mut reply = self.derive(&halves, name, bytes.clone(), parallel);
        words::place(&settled.registrations, &mut reply.diagnostics);
        if for_optimising_link(job) && needs_other_files(&reply) {
            match makes_bitcode_object(job) {
                true => {
                    plain = cc1::without_lto(&plain);
                    self.carry(job, &cc1::without_lto(&halves.back), bytes);
                }
                false => reply.diagnostics.iter_mut().for_each(advise_without_flto),
            }
        }
        let carries = job
            .output()
            .is_some_and(|o| self.compiled.contains_key(Path::new(o)));
        if carries && needs_other_files(&reply) {
            let notes = reply.diagnostics.into_iter().map(|finding| Diagnostic {
                severity: Severity::Note,
                ..finding
            });
            self.driven.diagnostics.extend(notes);
            return self.as_it_is(&plain);
        }
        self.driven.remarks.push(said);
        match self.bitcode(reply) {
            Some(bytes) => {
                files::write(&derived, &bytes)?;
                let code = status(&self.finished(halves.back))?;
                if let (0, Some(output)) = (code, job.output().map(Path::new))
                    && self.scratch.holds(output)
                {
                    let made = cc1::named_after(files::read(output)?, Path::new(name));
                    files::write(output, &made)?;
                }
                Ok(code)
            }
            None => Ok(1),
        }
    }

    /// Keeps the data that the object of a job carries.
    fn carry(&mut self, job: &Job, back: &Job, bitcode: Vec<u8>) {
        if let Some(output) = job.output() {
            let back = cc1::portable(&back.args);
            self.compiled
                .insert(output.into(), Carried { bitcode, back });
        }
    }

    /// What a compilation reads by standard input: its source, or nothing.
    fn input_of(&self, job: &Job) -> Result<Stdio, Diagnostic> {
        match &self.typed {
            Some(kept) if reads_standard_input(job) => files::open(kept).map(Stdio::from),
            _ => Ok(Stdio::null()),
        }
    }

    /// A compilation that needs nothing of ours; gives its exit status.
    fn as_it_is(&self, job: &Job) -> Result<i32, Diagnostic> {
        let mut command = job.command();
        let status = command.stdin(self.input_of(job)?).status();
        let status = status.map_err(|e| cannot_run(job, &e))?;
        exit_code(&job.program, &status, &[])
    }

    /// The back half of a compilation. Words are to be compiled again, and an optimiser that does not know them would
    /// take the code around them apart.
    fn finished(&self, mut back: Job) -> Job {
        if self.how.options.target == ParallelTarget::Words {
            back.args = cc1::without_passes(back.args);
        }
        back
    }

    fn derive(&self, halves: &Halves, name: &str, bytes: Vec<u8>, parallel: bool) -> Reply {
        let request = Request {
            inputs: vec![Input::new(name, bytes)],
            task: match self.how.restructure_all {
                true => Task::RestructureAll,
                // A function that is missing here may stand in another file, which a link of objects has.
                false => Task::Calls(CallsTask {
                    partial: !for_optimising_link(&halves.back),
                    ..CallsTask::default()
                }),
            },
            level: halves.level,
            emit: vec![
                OutputKind::Bitcode,
                OutputKind::Report,
                OutputKind::ParallelReport,
            ],
            options: Options {
                parallel,
                skip_late: true,
                // Who compiles words again reports lines, too.
                strip_debug: !halves.debug && self.how.options.target != ParallelTarget::Words,
                ..self.how.options.clone()
            },
        };
        child::compile(self.settings, &request)
    }

    /// The bitcode of a reply; its findings and its report are kept.
    fn bitcode(&mut self, reply: Reply) -> Option<Vec<u8>> {
        let report = reply.text(OutputKind::Report).map(String::from);
        self.driven.reports.extend(report);
        let regions = reply.text(OutputKind::ParallelReport).map(String::from);
        self.driven.regions.extend(regions);
        let bytes = reply.output(OutputKind::Bitcode).map(<[u8]>::to_vec);
        self.driven.diagnostics.extend(reply.diagnostics);
        bytes.filter(|_| reply.outcome == Outcome::Ok)
    }

    /// The link, across files where calls were left; gives its exit status.
    fn link(&mut self, job: &Job) -> Result<i32, Diagnostic> {
        let linked = link::prepare(self.settings, self.how, &self.scratch, job, &self.compiled)?;
        match linked.reply {
            // What was left for this step, and noted, is settled by its answer.
            Some(reply) => {
                (self.driven.diagnostics).retain(is_settled);
                match self.bitcode(reply) {
                    Some(_) => status(&self.with_runtime(&linked.job)?),
                    None => Ok(1),
                }
            }
            None => status(&self.with_runtime(&linked.job)?),
        }
    }

    /// A linker's job with the run-time library, where it needs that.
    fn with_runtime(&self, job: &Job) -> Result<Job, Diagnostic> {
        runtime::linked(job, &self.scratch, self.how.options.target)
    }

    /// Drops what was noted of files before: it was left for a link, and another file does not even compile.
    fn forget_notes(&mut self, before: usize) {
        let said = &mut self.driven.diagnostics;
        let of_this = said.split_off(before);
        said.retain(is_settled);
        said.extend(of_this);
    }

    /// Objects that a later link may need carry their modules.
    fn attach(&self) -> Result<(), Diagnostic> {
        for (object, carried) in &self.compiled {
            fat::attach(
                self.settings,
                &self.scratch,
                object,
                carried,
                &self.compiler,
            )?;
        }
        Ok(())
    }
}

/// Returns true if a diagnostic stays whatever a link brings: it is no note on a call that waits for one.
fn is_settled(finding: &Diagnostic) -> bool {
    finding.severity != Severity::Note || finding.code == Code::UnknownWord
}

/// Whether what a module was refused for may be mended by files that a later link brings: then its calls
/// wait for that, with all that is said of them. What is not seen may be why memory is not understood, too.
fn needs_other_files(reply: &Reply) -> bool {
    let mut errors = reply
        .diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error);
    reply.outcome != Outcome::Ok
        && errors.any(|d| {
            matches!(
                d.code,
                Code::UnknownCallee
                    | Code::UnseenGlobal
                    | Code::ThreadLocalGlobal
                    | Code::UnknownTarget
            )
        })
}

/// Whether a module calls OpenMP's run time.
fn calls_openmp(bitcode: &[u8]) -> bool {
    holds(bitcode, b"__kmpc_")
}

/// Whether a module holds markers of `gradus/parallel.h`, which nobody defines.
fn has_markers(bitcode: &[u8]) -> bool {
    holds(bitcode, b"__gr_")
}

/// Whether a module has something to raise.
pub(crate) fn is_parallel(bitcode: &[u8]) -> bool {
    calls_openmp(bitcode) || has_markers(bitcode)
}

/// Whether a module's bytes hold a name.
pub(crate) fn holds(bitcode: &[u8], key: &[u8]) -> bool {
    bitcode.windows(key.len()).any(|w| w == key)
}

/// Whether a module's table of symbols holds a name of the differentiation interface.
pub fn names_a_derivative(bitcode: &[u8]) -> bool {
    let keys: [&[u8]; 4] = [b"__enzyme_", b"__gradus_", b"gradus_vjp_", b"gradus_jvp_"];
    keys.iter().any(|key| holds(bitcode, key))
}

/// Whether a path names LLVM IR, or an object that may carry it.
pub fn is_ir(file: &Path) -> bool {
    let extension = file.extension().and_then(|e| e.to_str());
    matches!(extension, Some("bc" | "ll" | "o"))
}
