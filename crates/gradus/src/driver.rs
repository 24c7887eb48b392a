//! The drop-in drivers for clang and flang: run Gradus's passes between the compilation halves of modules
//! with differentiation calls.
//!
//! Flow: query the compiler driver for its jobs (`-###`); run the jobs in order. A compilation runs its
//! front half first; without a differentiation call in the bitcode, the user's own job runs unchanged.
//! Outputs are written to a scratch folder and moved together after all jobs succeed: a failed run leaves
//! no output. A link looks for calls left by the compilations ([`crate::link`]); without a link, objects
//! carry their modules for a later link ([`crate::objects::fat_objects`]).

use crate::clang_jobs;
use crate::clang_jobs::Job;
use crate::compilation::{self, DebugDetail, SplitCompilation};
use crate::direct::{self, MACROS};
use crate::files::{self, Scratch};
use crate::module_scan::{calls_openmp, has_interface_symbol, has_markers};
use crate::objects::fat_objects::{self, CarriedModule};
use crate::{Language, Settings, child, dependencies, job_execution, link, runtime, words};
use gradus_ir::{Code, Diagnostic, Severity};
use gradus_pipeline::report::Report;
use gradus_pipeline::{
    CallsTask, Input, Level, Options, Outcome, OutputKind, ParallelTarget, Reply, Request, Task,
};
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// Options of a driver in addition to the compiler's own.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// The language of the driver.
    pub language: Language,
    /// True if every function is imported and exported.
    pub restructure_all: bool,
    /// True if the compiler's messages are shown on a terminal with colours.
    pub color: bool,
    /// True to request the vectoriser's remarks on kernels' loops.
    pub kernel_report: bool,
    /// Options of the passes.
    pub options: Options,
}

/// The outcome of a driver run.
#[derive(Clone, Debug, Default)]
pub struct DriverOutcome {
    /// The exit status to pass on.
    pub status: i32,
    /// The compiler's messages, in whole lines.
    pub remarks: Vec<String>,
    /// Gradus's diagnostics.
    pub diagnostics: Vec<Diagnostic>,
    /// The text for standard output, apart from reports.
    pub printed: String,
    /// The report on all modules.
    pub report: Report,
}

/// Runs a driver's command line.
pub fn drive(settings: &Settings, how: &DriveOptions, args: &[String]) -> DriverOutcome {
    let mut driven = DriverOutcome::default();
    if let Err(diagnostic) = run(settings, how, args, &mut driven) {
        driven.diagnostics.push(diagnostic);
        driven.status = 1;
    }
    // With LTO, files hold parallel code that is already lowered.
    let optimises = |arg: &String| arg == "-flto" || arg.starts_with("-flto=");
    if driven.status != 0 && args.iter().any(optimises) {
        let unseen = driven.diagnostics.iter_mut();
        let unseen = unseen.filter(|d| d.code == Code::UnknownCallee);
        unseen.for_each(add_lto_help);
    }
    let limit = |d: &Diagnostic| d.severity == Severity::Error && d.code == Code::LimitReached;
    if driven.status != 0 && driven.diagnostics.iter().any(limit) {
        driven.status = LIMIT;
    }
    driven
}

/// The exit status after an exceeded limit.
const LIMIT: i32 = 3;

fn run(
    settings: &Settings,
    how: &DriveOptions,
    args: &[String],
    driven: &mut DriverOutcome,
) -> Result<(), Diagnostic> {
    let compiler = settings.compiler(how.language)?;
    let (args, notes) = words::without_plugins(args);
    let notes_are_empty = notes.is_empty();
    driven.diagnostics.extend(notes);
    let plain = how.options.target == ParallelTarget::Runtime && !how.restructure_all;
    if plain && notes_are_empty && how.language != Language::Fortran {
        let colored = how.color.then_some("-fcolor-diagnostics");
        if let Some(said) = direct::compile(settings, &compiler, &args, colored)? {
            driven.remarks.push(said);
            return Ok(());
        }
    }
    let args = &[args, settings.extra_arguments(how.language)].concat();
    let mut plan = clang_jobs::query(settings, &compiler, args)?;
    let only_asked = args.iter().any(|arg| arg == "-###");
    let ours = |job: &Job| job.is_compilation() || is_link(job);
    if only_asked || !plan.ok || !plan.jobs.iter().any(ours) {
        let mut args = args.to_vec();
        if plan.ok && plan.jobs.iter().any(reads_source) {
            let macros = MACROS.iter().map(|name| format!("-D{name}"));
            args.splice(0..0, macros);
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
        true => Some(save_standard_input(&scratch)?),
        false => None,
    };
    let mut session = Session {
        settings,
        how,
        scratch,
        saved_stdin: typed,
        driven,
        compiled: HashMap::new(),
        compiler,
        links: plan.jobs.iter().any(is_link),
        waiting: Vec::new(),
    };
    for job in plan.jobs.iter_mut().filter(|job| reads_source(job)) {
        define_macros(job);
    }
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
                session.drop_earlier_notes(before);
            }
            return Ok(());
        }
    }
    if !session.links {
        session.attach()?;
    }
    outputs.commit(&settings.leftovers)
}

/// Returns true if a job compiles or preprocesses C or C++ for the host.
fn reads_source(job: &Job) -> bool {
    let ours = job.args.first().is_some_and(|first| first == "-cc1");
    let device = job.args.iter().any(|arg| arg == "-fcuda-is-device");
    ours && !device && matches!(job.value("-x"), Some("c" | "c++"))
}

fn define_macros(job: &mut Job) {
    let at = job.args.len().min(1);
    let words = MACROS.iter().flat_map(|name| ["-D", name]);
    job.args.splice(at..at, words.map(String::from));
}

/// Returns true if a compilation emits LLVM IR.
fn emits_llvm(job: &Job) -> bool {
    let kinds = ["-emit-llvm", "-emit-llvm-bc"];
    job.args.iter().any(|arg| kinds.contains(&arg.as_str()))
}

/// Returns true if a compilation emits bitcode for LTO: such files carry no module section. A file whose
/// derivatives are deferred to the link becomes an ordinary object.
fn is_lto_compilation(job: &Job) -> bool {
    let mut options = job.args.iter();
    options.any(|arg| arg == "-flto" || arg.starts_with("-flto="))
}

/// Returns true if a compilation emits bitcode in place of an object, and an object would serve as well.
fn makes_bitcode_object(job: &Job) -> bool {
    let emits = job.args.iter().any(|arg| arg == "-emit-llvm-bc");
    emits && job.output().is_some_and(|output| output.ends_with(".o"))
}

/// Adds help for a derivative that needs other files under LTO.
fn add_lto_help(finding: &mut Diagnostic) {
    let help = "compile this file and the files of the called functions without `-flto`: only objects compiled \
                without `-flto` carry the bitcode for derivatives across files";
    if finding.severity == Severity::Error {
        finding.help = Some(help.to_string());
    }
}

/// Returns true if a job runs the linker.
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

/// The signal of a program that writes to a closed pipe.
const BROKEN_PIPE: i32 = 13;

/// A driver run in progress.
struct Session<'a> {
    settings: &'a Settings,
    how: &'a DriveOptions,
    scratch: Scratch,
    /// The saved standard input, if a source.
    saved_stdin: Option<PathBuf>,
    driven: &'a mut DriverOutcome,
    /// The emitted objects, with the modules to attach.
    compiled: HashMap<PathBuf, CarriedModule>,
    /// The compiler.
    compiler: PathBuf,
    /// True if the command line also links.
    links: bool,
    /// Refusals that the link may resolve because it knows the whole program.
    waiting: Vec<Diagnostic>,
}

/// Runs a job with inherited input and output. Returns the exit status.
fn status(job: &Job) -> Result<i32, Diagnostic> {
    let status = job.command().status().map_err(|e| cannot_run(job, &e))?;
    exit_code(&job.program, &status, &[])
}

/// Returns true if a compilation reads its source from standard input.
fn reads_standard_input(job: &Job) -> bool {
    job.is_compilation() && job.input() == Some("-")
}

/// Saves standard input to a file: several jobs read the source.
fn save_standard_input(scratch: &Scratch) -> Result<PathBuf, Diagnostic> {
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

/// Returns the exit status of a program, passed on by the driver. A signal is a diagnostic, except for a
/// closed pipe.
fn exit_code(program: &Path, status: &ExitStatus, said: &[u8]) -> Result<i32, Diagnostic> {
    if status.signal() == Some(BROKEN_PIPE) {
        return Ok(128 + BROKEN_PIPE);
    }
    match job_execution::signal_error(program, status, said) {
        Some(died) => Err(died),
        None => Ok(status.code().unwrap_or(1)),
    }
}

impl Session<'_> {
    /// Compiles a source. Returns the exit status.
    fn compile(&mut self, at: usize, job: &Job) -> Result<i32, Diagnostic> {
        self.compiler.clone_from(&job.program);
        if self.how.options.target == ParallelTarget::Intrinsics && !emits_llvm(job) {
            let message =
                "`--par-target=intrinsics` emits LLVM IR, but this compilation emits machine code";
            let finding = Diagnostic::error(Code::BadOption, message);
            return Err(
                finding.help("add `-c -emit-llvm`, and compile the output with `gradus cc`")
            );
        }
        let bitcode = self.scratch.file(&format!("{at}.bc"));
        let derived = self.scratch.file(&format!("{at}.derived.bc"));
        let mut halves =
            compilation::split_compilation(job, &bitcode, &derived, DebugDetail::Lines);
        dependencies::list_files(&mut halves.front, &bitcode);
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
        if let (Some(kept), Some(last)) = (&self.saved_stdin, typed.args.last_mut())
            && last == "-"
        {
            *last = kept.display().to_string();
        }
        let mut settled = words::module_with_words(self.settings, &typed, &bitcode, &self.scratch)?;
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
        let derives = has_interface_symbol(&bytes);
        let optimises = derives || halves.level != Level::O0;
        let parallel = has_markers(&bytes) || optimises && calls_openmp(&bytes);
        if !self.how.restructure_all && !parallel && !derives {
            // Repeats the messages of the front half.
            return self.run_unchanged(&plain);
        }
        let name = job.input().unwrap_or_default();
        let mut plain = plain;
        let mut reply = self.derive(&halves, name, bytes.clone(), parallel);
        words::add_registration_lines(&settled.registrations, &mut reply.diagnostics);
        if is_lto_compilation(job) && may_be_resolved_at_link(&reply) {
            match makes_bitcode_object(job) {
                true => {
                    plain = compilation::without_lto(&plain);
                    self.carry(job, &compilation::without_lto(&halves.back), bytes);
                }
                false => reply.diagnostics.iter_mut().for_each(add_lto_help),
            }
        }
        let carries = job
            .output()
            .is_some_and(|o| self.compiled.contains_key(Path::new(o)));
        // The link repeats the derivative, and reports what remains.
        if carries && self.may_wait_for_link(&reply) {
            return self.run_unchanged(&plain);
        }
        self.driven.remarks.push(said);
        match self.bitcode(reply) {
            Some(bytes) => {
                files::write(&derived, &bytes)?;
                let code = status(&self.back_half(halves.back))?;
                if let (0, Some(output)) = (code, job.output().map(Path::new))
                    && self.scratch.holds(output)
                {
                    let made = compilation::with_module_name(files::read(output)?, Path::new(name));
                    files::write(output, &made)?;
                }
                Ok(code)
            }
            None => Ok(1),
        }
    }

    /// Returns true if a link may resolve a refusal. The link of an executable in the same run also knows that no other
    /// code uses the definitions; if that does not help, the first refusal is reported, which is closer to the source.
    fn may_wait_for_link(&mut self, reply: &Reply) -> bool {
        if may_be_resolved_at_link(reply) {
            return true;
        }
        let by_knowledge = self.links
            && has_error(reply, |code| {
                matches!(
                    code,
                    Code::Outlives | Code::FloatBits | Code::UnknownMemoryType
                )
            });
        if by_knowledge {
            self.waiting.extend(reply.diagnostics.iter().cloned());
        }
        by_knowledge
    }

    /// Records the module that the object of a job carries.
    fn carry(&mut self, job: &Job, back: &Job, bitcode: Vec<u8>) {
        if let Some(output) = job.output() {
            let back = compilation::without_temporary_paths(&back.args);
            self.compiled
                .insert(output.into(), CarriedModule { bitcode, back });
        }
    }

    /// Returns the standard input of a compilation: the saved source, or nothing.
    fn input_of(&self, job: &Job) -> Result<Stdio, Diagnostic> {
        match &self.saved_stdin {
            Some(kept) if reads_standard_input(job) => files::open(kept).map(Stdio::from),
            _ => Ok(Stdio::null()),
        }
    }

    /// Runs a compilation without Gradus's passes. Returns the exit status.
    fn run_unchanged(&self, job: &Job) -> Result<i32, Diagnostic> {
        let mut command = job.command();
        let status = command.stdin(self.input_of(job)?).status();
        let status = status.map_err(|e| cannot_run(job, &e))?;
        exit_code(&job.program, &status, &[])
    }

    /// Returns the back half of a compilation. Parallel intrinsics are compiled again; an optimiser that
    /// does not know them would break the code around.
    fn back_half(&self, mut back: Job) -> Job {
        if self.how.options.target == ParallelTarget::Intrinsics {
            back.args = compilation::without_passes(back.args);
        }
        back
    }

    fn derive(
        &self,
        halves: &SplitCompilation,
        name: &str,
        bytes: Vec<u8>,
        parallel: bool,
    ) -> Reply {
        let request = Request {
            inputs: vec![Input::new(name, bytes)],
            task: match self.how.restructure_all {
                true => Task::RestructureAll,
                // A function missing here may be defined in another file, available to a link of objects.
                false => Task::Calls(CallsTask {
                    partial: !is_lto_compilation(&halves.back),
                    ..CallsTask::default()
                }),
            },
            level: halves.level,
            emit: vec![OutputKind::Bitcode],
            report: true,
            options: Options {
                parallel,
                skip_late: true,
                // Recompiled parallel intrinsics need lines for reports.
                strip_debug: !halves.debug && self.how.options.target != ParallelTarget::Intrinsics,
                ..self.how.options.clone()
            },
        };
        child::compile(self.settings, &request)
    }

    /// Returns the bitcode of a reply, and records diagnostics and reports.
    fn bitcode(&mut self, mut reply: Reply) -> Option<Vec<u8>> {
        (self.driven.report).append(std::mem::take(&mut reply.report));
        let bytes = reply.output(OutputKind::Bitcode).map(<[u8]>::to_vec);
        self.driven.diagnostics.extend(reply.diagnostics);
        bytes.filter(|_| reply.outcome == Outcome::Ok)
    }

    /// Links, across files if calls were left. Returns the exit status.
    fn link(&mut self, job: &Job) -> Result<i32, Diagnostic> {
        let linked = link::prepare(
            self.settings,
            &self.how.options,
            &self.scratch,
            job,
            &self.compiled,
        )?;
        let is_resolved = linked
            .reply
            .as_ref()
            .is_some_and(|reply| reply.outcome == Outcome::Ok);
        if !self.waiting.is_empty() && !is_resolved {
            self.driven.diagnostics.retain(survives_link);
            self.driven.diagnostics.append(&mut self.waiting);
            return Ok(1);
        }
        match linked.reply {
            // Notes on deferred calls are superseded by the link's reply.
            Some(reply) => {
                (self.driven.diagnostics).retain(survives_link);
                match self.bitcode(reply) {
                    Some(_) => status(&self.with_runtime(&linked.job)?),
                    None => Ok(1),
                }
            }
            None => status(&self.with_runtime(&linked.job)?),
        }
    }

    /// Returns the linker's job, with the runtime library if needed.
    fn with_runtime(&self, job: &Job) -> Result<Job, Diagnostic> {
        runtime::with_runtime(job, &self.scratch, self.how.options.target)
    }

    /// Drops notes on earlier files: the calls were deferred to a link, but another file does not compile.
    fn drop_earlier_notes(&mut self, before: usize) {
        let said = &mut self.driven.diagnostics;
        let of_this = said.split_off(before);
        said.retain(survives_link);
        said.extend(of_this);
    }

    /// Attaches modules to objects for a later link.
    fn attach(&self) -> Result<(), Diagnostic> {
        for (object, carried) in &self.compiled {
            fat_objects::attach(
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

/// Returns true unless a diagnostic is a note on a call deferred to the link.
fn survives_link(finding: &Diagnostic) -> bool {
    finding.severity != Severity::Note || finding.code == Code::UnsupportedKeyword
}

/// Returns true if files of a later link may resolve a refusal: the module's calls, with their diagnostics,
/// then wait for the link. An unknown callee may also be the cause of unknown memory contents.
fn may_be_resolved_at_link(reply: &Reply) -> bool {
    has_error(reply, |code| {
        matches!(
            code,
            Code::UnknownCallee
                | Code::ExternalGlobal
                | Code::ThreadLocalGlobal
                | Code::UnknownIndirectTarget
        )
    })
}

/// Returns true if a refusal has an error with a stated code.
fn has_error(reply: &Reply, is_stated: impl Fn(Code) -> bool) -> bool {
    let mut errors = reply
        .diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error);
    reply.outcome != Outcome::Ok && errors.any(|d| is_stated(d.code))
}
