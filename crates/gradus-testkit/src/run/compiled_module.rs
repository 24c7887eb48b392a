//! Compiles functions of a module, with both derivatives of each, into this process.
//!
//! Flow: bitcode → `gradus_pipeline::compile` → bitcode → JIT. Many programs share a run; a program that is
//! refused, or causes a panic, is removed, and the others are tried again.

use crate::run::verdict::Verdict;
use gradus_ir::{Diagnostic, Severity};
use gradus_llvm::host::jit::Jit;
use gradus_llvm::{Host, OptLevel, Pipeline};
use gradus_pipeline::{
    Derivative, GradRequest, GradTask, Input, Level, Mode, Options, OutputKind, Reply, Request,
    Task, compile,
};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function to be differentiated with respect to `x` and `s`.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The symbol.
    pub function: String,
    /// True if numbers pass through binary32, with seven digits.
    pub single: bool,
}

/// A module, and its requests.
pub(crate) struct Module<'m> {
    pub bytes: &'m [u8],
    pub subjects: &'m [Subject],
    /// Returns the program that caused a diagnostic.
    pub blamed: &'m dyn Fn(&Diagnostic) -> Option<usize>,
    /// Returns the source shown with a diagnostic.
    pub shown: &'m dyn Fn(&Diagnostic) -> String,
    pub options: Options,
    pub level: Level,
}

/// The module with derivatives.
pub(crate) struct CompiledDerivatives {
    pub bytes: Vec<u8>,
    /// The text of the unit after the pass named by the options.
    pub dump: Option<String>,
    /// VJP and JVP of each program; `None` for a program with a verdict.
    pub derivatives: Vec<Option<(Derivative, Derivative)>>,
}

/// Executable programs.
pub(crate) struct Loaded {
    pub jit: Jit,
    /// See [`CompiledDerivatives::derivatives`].
    pub derivatives: Vec<Option<(Derivative, Derivative)>>,
}

/// Compiles the derivatives of as many programs as possible. Returns the verdicts on the others.
///
/// # Errors
/// The output contradicts the reply.
pub(crate) fn compile_derivatives(
    module: &Module,
) -> Result<(Option<CompiledDerivatives>, Vec<Option<Verdict>>), String> {
    let count = module.subjects.len();
    let mut verdicts: Vec<Option<Verdict>> = vec![None; count];
    let reply = loop {
        let left: Vec<usize> = (0..count).filter(|i| verdicts[*i].is_none()).collect();
        if left.is_empty() {
            return Ok((None, verdicts));
        }
        let faults = match module.attempt(&left) {
            Ok(reply) => break reply,
            Err(faults) => faults,
        };
        let mut found = faults.programs_of_diagnostics(module, &left);
        if found.is_empty() {
            found = module.bisect_failures(&left);
        }
        if found.is_empty() {
            // The programs fail only together.
            found = left
                .iter()
                .map(|i| (*i, faults.verdict(module, 0)))
                .collect();
        }
        for (i, verdict) in found {
            verdicts[i] = Some(verdict);
        }
    };
    let made = CompiledDerivatives::of(&reply, module.subjects, &verdicts)?;
    Ok((Some(made), verdicts))
}

/// The reason why a module was not compiled.
enum Faults {
    Refused(Vec<Diagnostic>),
    Panicked(String),
}

impl Faults {
    /// Returns the programs that caused diagnostics, each with its first diagnostic.
    fn programs_of_diagnostics(&self, module: &Module, left: &[usize]) -> BTreeMap<usize, Verdict> {
        let Faults::Refused(findings) = self else {
            return BTreeMap::new();
        };
        let mut found = BTreeMap::new();
        for (at, finding) in findings.iter().enumerate() {
            if let Some(i) = (module.blamed)(finding).filter(|i| left.contains(i)) {
                found.entry(i).or_insert_with(|| self.verdict(module, at));
            }
        }
        found
    }

    /// Returns the verdict for diagnostic `at`.
    fn verdict(&self, module: &Module, at: usize) -> Verdict {
        let findings = match self {
            Faults::Panicked(text) => {
                return Verdict::Crash(format!("the pipeline panics: {text}"));
            }
            Faults::Refused(findings) => findings,
        };
        let Some(first) = findings.get(at) else {
            return Verdict::Crash("the compiler refuses the function without a diagnostic".into());
        };
        let code = format!("{:?}", first.code);
        let place = format!("{} | {}", first.message, (module.shown)(first));
        // A verifier failure on the output is a fault, not a refusal.
        match code.as_str() {
            "BrokenOutput" | "BrokenRule" | "CompilerDied" => {
                Verdict::Crash(format!("{code}: {place}"))
            }
            _ => Verdict::Refused { code, place },
        }
    }
}

impl Module<'_> {
    /// Returns the programs that fail alone, found by bisection.
    fn bisect_failures(&self, left: &[usize]) -> BTreeMap<usize, Verdict> {
        let (mut found, mut open) = (BTreeMap::new(), vec![left]);
        while let Some(part) = open.pop() {
            let Err(faults) = self.attempt(part) else {
                continue;
            };
            match part {
                [] => {}
                [one] => drop(found.insert(*one, faults.verdict(self, 0))),
                _ => {
                    let (a, b) = part.split_at(part.len() / 2);
                    open.extend([a, b]);
                }
            }
        }
        found
    }

    /// Requests both derivatives of some programs.
    fn attempt(&self, which: &[usize]) -> Result<Reply, Faults> {
        let wish = |i: usize, mode| GradRequest {
            function: self.subjects[i].function.clone(),
            wrt: vec!["x".into(), "s".into()],
            mode,
            with_primal: true,
            ..GradRequest::default()
        };
        let both = |i: &usize| [wish(*i, Mode::Reverse), wish(*i, Mode::Forward)];
        let request = Request {
            inputs: vec![Input::new("programs.bc", self.bytes)],
            task: Task::Grad(GradTask {
                derivatives: which.iter().flat_map(both).collect(),
                beside: false,
            }),
            level: self.level,
            report: false,
            emit: vec![OutputKind::Bitcode],
            options: self.options.clone(),
        };
        match catch_unwind(AssertUnwindSafe(|| compile(&request))) {
            Err(payload) => {
                let text = payload.downcast_ref::<String>().cloned();
                let short = payload.downcast_ref::<&str>().map(|s| s.to_string());
                Err(Faults::Panicked(text.or(short).unwrap_or_default()))
            }
            Ok(reply) if reply.has_errors() => {
                let errors = reply.diagnostics.into_iter();
                let errors = errors.filter(|d| d.severity == Severity::Error);
                Err(Faults::Refused(errors.collect()))
            }
            Ok(reply) => Ok(reply),
        }
    }
}

impl CompiledDerivatives {
    fn of(
        reply: &Reply,
        subjects: &[Subject],
        verdicts: &[Option<Verdict>],
    ) -> Result<CompiledDerivatives, String> {
        let find = |subject: &Subject, mode| {
            let mut made = reply.derivatives.iter();
            made.find(|d| d.function == subject.function && d.mode == mode)
                .cloned()
        };
        let mut derivatives = Vec::new();
        for (subject, verdict) in std::iter::zip(subjects, verdicts) {
            let both = find(subject, Mode::Reverse).zip(find(subject, Mode::Forward));
            if verdict.is_none() && both.is_none() {
                return Err("the compiler's reply lists no derivative".into());
            }
            derivatives.push(both.filter(|_| verdict.is_none()));
        }
        Ok(CompiledDerivatives {
            bytes: reply
                .output(OutputKind::Bitcode)
                .ok_or("the compiler produced no bitcode")?
                .to_vec(),
            dump: reply.dumps.last().map(|dump| dump.text.clone()),
            derivatives,
        })
    }

    /// Loads the module, after LLVM's optimiser if a level is given.
    ///
    /// # Errors
    /// LLVM refuses the module.
    pub fn load(&self, level: Option<OptLevel>) -> Result<Loaded, String> {
        let mut host = Host::parse(&self.bytes, "made.bc").map_err(|d| d.message)?;
        if let Some(level) = level {
            host.run(Pipeline::Late(level)).map_err(|d| d.message)?;
        }
        let pairs = self.derivatives.iter().flatten();
        let names: Vec<&str> = pairs
            .flat_map(|(vjp, jvp)| [&vjp.function, &vjp.name, &jvp.name])
            .map(String::as_str)
            .collect();
        let jit = Jit::quick(host, &names).map_err(|d| d.message)?;
        Ok(Loaded {
            jit,
            derivatives: self.derivatives.clone(),
        })
    }
}
