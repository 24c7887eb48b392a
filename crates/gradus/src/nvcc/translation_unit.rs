//! Compiles a source with device code: clang twice, Gradus's passes, and clang's back end.

use super::options::{Invocation, Source};
use crate::clang_jobs;
use crate::clang_jobs::Job;
use crate::compilation::{self, DebugDetail, SplitCompilation};
use crate::driver::{DriveOptions, DriverOutcome};
use crate::files::{self, Scratch};
use crate::nvcc::clang_messages;
use crate::nvcc::execution_spaces::FileSubstitution;
use crate::nvcc::vectorizer_remarks;
use crate::{Language, Settings, child, dependencies, words};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{CallsTask, Input, Options, Outcome, OutputKind, Reply, Request, Task};
use std::path::Path;
use std::process::Stdio;

/// The context for compiling the sources of a command line.
pub(super) struct UnitCompiler<'a> {
    pub settings: &'a Settings,
    pub how: &'a DriveOptions,
    pub asked: &'a Invocation,
    pub scratch: &'a Scratch,
    /// The output form, as clang's arguments.
    pub form: &'a [&'static str],
}

/// Both halves of a source before the passes, and the back half of the compilation.
pub(super) struct SplitCudaSource {
    /// The host's compilation, split.
    pub halves: SplitCompilation,
    /// The host half: bitcode.
    pub host: Vec<u8>,
    /// The device half: text.
    pub device: Input,
}

/// The macro by which sources detect nvcc, in every language.
pub(super) const BY_NVCC: &str = "-D__NVCC__=1";

/// Clang's arguments for CUDA sources without a toolkit.
const LANGUAGE: &[&str] = &[
    "-x",
    "cuda",
    BY_NVCC,
    "-nocudainc",
    "-nocudalib",
    "-Xclang",
    "-target-sdk-version=12.2",
    "-include",
    "cuda_runtime.h",
    "-Wno-unknown-cuda-version",
    "-Wno-unused-command-line-argument",
    "-Wno-register",
    "-Wno-reserved-user-defined-literal",
    "-Wno-invalid-constexpr",
];

/// Gives `long double` the host's size on the device, too: structures with `long double` have a single
/// layout. Clang refuses every use in device code, since a GPU has no such type.
#[cfg(target_arch = "x86_64")]
const LONG_DOUBLE: &str = "-mlong-double-80";
#[cfg(not(target_arch = "x86_64"))]
const LONG_DOUBLE: &str = "-mlong-double-128";

/// Returns the search path of Gradus's CUDA headers.
pub(super) fn header_search_path(settings: &Settings, _scratch: &Scratch) -> Vec<String> {
    let folder = settings.include.iter().map(|folder| folder.join("cuda"));
    folder
        .flat_map(|folder| ["-isystem".to_string(), folder.display().to_string()])
        .collect()
}

/// Returns the options for preprocessing the host half.
pub(super) fn host_preprocess_options(asked: &Invocation) -> Vec<String> {
    let words = LANGUAGE.iter().copied().chain(["--cuda-host-only"]);
    let words = words.map(String::from);
    words.chain([architecture(asked)]).collect()
}

/// Returns the architecture for `__CUDA_ARCH__`: the requested one, limited below to GPUs with independent
/// thread scheduling, and above to GPUs whose instructions are supported.
fn architecture(asked: &Invocation) -> String {
    let known = match asked.architecture {
        ..=72 => "70",
        73..=79 => "75",
        80..=85 => "80",
        86..=88 => "86",
        89 => "89",
        90.. => "90",
    };
    format!("--offload-arch=sm_{known}")
}

impl UnitCompiler<'_> {
    /// Compiles both halves of a source up to the passes; the back half reads `derived`. Returns `None` if
    /// a compiler refuses the source, with status and messages in `driven`.
    pub fn open(
        &self,
        at: usize,
        source: &Source,
        output: &Path,
        (derived, detail): (&Path, DebugDetail),
        driven: &mut DriverOutcome,
    ) -> Result<Option<SplitCudaSource>, Diagnostic> {
        let bitcode = self.scratch.file(&format!("{at}.host.bc"));
        let mut spaces = FileSubstitution::of(&source.path, at, self.scratch)?;
        let (halves, status, said) = loop {
            let host = self.host_job(source, output, &spaces)?;
            let mut halves = compilation::split_compilation(&host, &bitcode, derived, detail);
            dependencies::list_files(&mut halves.front, &bitcode);
            let (status, said) = run(&halves.front)?;
            if status == 0 || !spaces.complete_from_notes(&said, &source.path, at, self.scratch)? {
                break (halves, status, said);
            }
        };
        clang_messages::diagnostic_for_error(&said).map_or(Ok(()), Err)?;
        driven.remarks.push(said);
        driven.status = status;
        if status != 0 {
            return Ok(None);
        }
        let text = self.scratch.file(&format!("{at}.device.ll"));
        let (status, said) = run(&self.device_job(source, &text, &spaces)?)?;
        if status != 0 {
            clang_messages::diagnostic_for_error(&said).map_or(Ok(()), Err)?;
            driven.remarks.push(said);
            driven.status = status;
            return Ok(None);
        }
        let settled =
            words::module_with_words(self.settings, &halves.front, &bitcode, self.scratch)?;
        Ok(Some(SplitCudaSource {
            halves,
            host: settled.module,
            device: Input::new(source.path.clone(), files::read(&text)?),
        }))
    }

    /// Compiles a source to an object. Returns the exit status of a compiler that refuses it.
    pub fn compile(
        &self,
        at: usize,
        source: &Source,
        object: &Path,
        driven: &mut DriverOutcome,
    ) -> Result<i32, Diagnostic> {
        let derived = self.scratch.file(&format!("{at}.derived.bc"));
        let to = (derived.as_path(), DebugDetail::Lines);
        let Some(opened) = self.open(at, source, object, to, driven)? else {
            return Ok(driven.status);
        };
        let halves = opened.halves;
        let request = Request {
            inputs: vec![Input::new(source.path.clone(), opened.host)],
            task: Task::Calls(CallsTask {
                partial: true,
                ..CallsTask::default()
            }),
            level: halves.level,
            emit: vec![OutputKind::Bitcode],
            report: true,
            options: Options {
                parallel: true,
                skip_late: true,
                // Remarks need lines.
                strip_debug: !halves.debug && !self.how.kernel_report,
                separate: self.asked.separate,
                device: Some(opened.device),
                ..self.how.options.clone()
            },
        };
        let reply = child::compile(self.settings, &request);
        let before = driven.report.kernels.len();
        let Some(bytes) = self.bitcode(reply, driven) else {
            return Ok(1);
        };
        files::write(&derived, &bytes)?;
        self.finish(halves.back, before, driven)
    }

    /// Runs the compiler's back end, with the vectoriser's remarks on the unit's kernels if requested. `first` is the
    /// index of the unit's first kernel in the report.
    fn finish(
        &self,
        mut back: Job,
        first: usize,
        driven: &mut DriverOutcome,
    ) -> Result<i32, Diagnostic> {
        if !self.how.kernel_report {
            let (status, said) = run(&back)?;
            driven.remarks.push(said);
            return Ok(status);
        }
        back.args
            .extend(vectorizer_remarks::REMARK_OPTIONS.map(String::from));
        let (status, said) = run(&back)?;
        if status != 0 {
            driven.remarks.push(said);
            return Ok(status);
        }
        vectorizer_remarks::add_remarks(&mut driven.report.kernels[first..], &said);
        Ok(status)
    }

    fn bitcode(&self, mut reply: Reply, driven: &mut DriverOutcome) -> Option<Vec<u8>> {
        driven.report.append(std::mem::take(&mut reply.report));
        let bytes = reply.output(OutputKind::Bitcode).map(<[u8]>::to_vec);
        driven.diagnostics.extend(reply.diagnostics);
        bytes.filter(|_| reply.outcome == Outcome::Ok)
    }

    /// Returns the host's compilation, as planned by clang.
    fn host_job(
        &self,
        source: &Source,
        object: &Path,
        spaces: &FileSubstitution,
    ) -> Result<Job, Diagnostic> {
        let mut args = self.common_options();
        args.extend(spaces.words());
        args.extend(
            [
                "--cuda-host-only",
                "-Xclang",
                "-fcuda-include-gpubinary",
                "-Xclang",
                "/dev/null",
            ]
            .map(String::from),
        );
        args.extend(self.form.iter().map(|word| word.to_string()));
        let named = |word: &String| word.starts_with("-march=");
        if !self.asked.host.iter().any(named) {
            // Kernels are compiled for the existing device: this machine.
            args.push("-march=native".into());
        }
        args.extend(self.asked.host.iter().cloned());
        args.extend(self.dependences(source));
        args.push(self.level());
        self.job(args, source, object)
    }

    /// Returns the options for the dependence list, if not stated: file name, and the user's object as
    /// target.
    fn dependences(&self, source: &Source) -> Vec<String> {
        let says = |words: &[&str]| self.asked.host.iter().any(|w| words.contains(&w.as_str()));
        let mut words = Vec::new();
        if says(&["-MD", "-MMD"]) {
            let object = super::object_name(self.asked, source);
            let mut add = |word: &str, path: &Path| {
                words.extend([word.to_string(), path.display().to_string()]);
            };
            if !says(&["-MF"]) {
                add("-MF", &object.with_extension("d"));
            }
            if !says(&["-MT", "-MQ"]) {
                add("-MT", &object);
            }
        }
        words
    }

    /// Returns the device's compilation to text.
    fn device_job(
        &self,
        source: &Source,
        text: &Path,
        spaces: &FileSubstitution,
    ) -> Result<Job, Diagnostic> {
        let mut args = self.common_options();
        args.extend(spaces.words());
        args.extend(
            [
                "--cuda-device-only",
                "--cuda-feature=+ptx80",
                "-w",
                "-O2",
                "-Xclang",
                "-disable-llvm-passes",
                "-fno-discard-value-names",
                "-emit-llvm",
                "-S",
                "-Xclang",
                LONG_DOUBLE,
            ]
            .map(String::from),
        );
        args.push(match self.asked.common.iter().any(|word| word == "-g") {
            // Otherwise clang emits only line tables for optimised code.
            true => "--cuda-noopt-device-debug".into(),
            false => "-gline-tables-only".into(),
        });
        self.job(args, source, text)
    }

    /// Returns the options of both compilations.
    fn common_options(&self) -> Vec<String> {
        let mut line: Vec<String> = LANGUAGE.iter().map(|w| w.to_string()).collect();
        line.push(architecture(self.asked));
        if !self
            .asked
            .common
            .iter()
            .any(|word| word.starts_with("-std="))
        {
            line.push("-std=gnu++17".into());
        }
        line.extend(header_search_path(self.settings, self.scratch));
        line.extend(self.asked.common.iter().cloned());
        line
    }

    /// Returns the optimisation level of code generation. Device code is optimised unless compiled for a
    /// debugger.
    fn level(&self) -> String {
        match self.asked.level.as_deref() {
            _ if self.asked.device_debug => "-O1".into(),
            None => "-O3".into(),
            Some("-O0") => "-O2".into(),
            Some(level) => level.to_string(),
        }
    }

    fn job(
        &self,
        mut args: Vec<String>,
        source: &Source,
        output: &Path,
    ) -> Result<Job, Diagnostic> {
        let clang = self.settings.compiler(Language::PlusPlus)?;
        args.extend([
            "-o".to_string(),
            output.display().to_string(),
            source.path.clone(),
        ]);
        let plan = clang_jobs::query(self.settings, &clang, &args)?;
        let is_cc1 = |job: &&Job| job.args.first().is_some_and(|a| a == "-cc1");
        let job = plan.jobs.iter().find(is_cc1).filter(|_| plan.ok);
        job.cloned().ok_or_else(|| {
            let message = format!("the compiler does not accept {}", source.path);
            let mut finding = Diagnostic::error(Code::ToolFailed, message);
            finding.notes.clone_from(&plan.remarks);
            finding
        })
    }
}

/// Runs a compiler. Returns exit status and messages.
fn run(job: &Job) -> Result<(i32, String), Diagnostic> {
    let output = job.command().stdin(Stdio::null()).output();
    let output = output.map_err(|e| {
        let message = format!("cannot run {}: {e}", job.program.display());
        Diagnostic::error(Code::ToolFailed, message)
    })?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code().unwrap_or(1), said))
}
