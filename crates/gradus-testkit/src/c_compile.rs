//! C programs to functions that run in this process, with both derivatives of each.
//!
//! Flow: clang → bitcode → `gradus_pipeline::compile` → bitcode → JIT. Many programs share a run; one
//! that is refused, or makes the pipeline panic, leaves it, and the others are tried again.

use crate::c_check::Verdict;
use crate::generate::c::{C_INCLUDES, CProgram};
use gradus_ir::{Diagnostic, Severity};
use gradus_llvm::Host;
use gradus_llvm::jit::Jit;
use gradus_pipeline::{
    Derivative, GradRequest, GradTask, Input, Level, Mode, Options, OutputKind, Reply, Request,
    Task, compile,
};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

/// The ways in which a source may reach differentiation: flags of the compiler.
pub const ROUTES: &[&[&str]] = &[
    &["-O0"],
    &["-O1"],
    &["-O2", "-Xclang", "-disable-llvm-passes"],
    &["-O3"],
];

/// Programs that run: one module, and per program its VJP and JVP.
pub(crate) struct Compiled {
    pub jit: Jit,
    /// In the order of the programs; `None` where there is a verdict already.
    pub derivatives: Vec<Option<(Derivative, Derivative)>>,
}

/// Compiles programs; gives what runs, and the verdicts on those that do not.
///
/// # Errors
/// Where the compiler itself fails, which is a fault of the programs.
pub(crate) fn compile_c(
    programs: &[CProgram],
    flags: &[&str],
) -> Result<(Option<Compiled>, Vec<Option<Verdict>>), String> {
    let (source, ends) = one_source(programs);
    let bytes = bitcode(&source, flags)?;
    let mut verdicts: Vec<Option<Verdict>> = vec![None; programs.len()];
    let reply = loop {
        let left: Vec<usize> = (0..programs.len())
            .filter(|i| verdicts[*i].is_none())
            .collect();
        if left.is_empty() {
            return Ok((None, verdicts));
        }
        let faults = match attempt(&bytes, programs, &left) {
            Ok(reply) => break reply,
            Err(faults) => faults,
        };
        if left.len() == 1 {
            verdicts[left[0]] = Some(faults.verdict(&source));
            continue;
        }
        let mut found = faults.places(&ends, &left);
        if found.is_empty() {
            let fails = |i: &&usize| attempt(&bytes, programs, &[**i]).is_err();
            found = left.iter().filter(fails).copied().collect();
        }
        if found.is_empty() {
            let all = faults.verdict(&source);
            left.iter().for_each(|i| verdicts[*i] = Some(all.clone()));
        }
        for i in found {
            if let Err(own) = attempt(&bytes, programs, &[i]) {
                verdicts[i] = Some(own.verdict(&source));
            }
        }
    };
    let compiled = load(&reply, programs, &verdicts)?;
    Ok((Some(compiled), verdicts))
}

/// Why a module was not made.
enum Faults {
    Refused(Vec<Diagnostic>),
    Panicked(String),
}

impl Faults {
    /// The programs that the findings speak of.
    fn places(&self, ends: &[u32], left: &[usize]) -> Vec<usize> {
        let Faults::Refused(findings) = self else {
            return Vec::new();
        };
        let lines = findings.iter().flat_map(|d| &d.labels).map(|l| l.span.line);
        let mut found: Vec<usize> = lines
            .map(|line| ends.partition_point(|e| *e < line))
            .collect();
        found.retain(|i| left.contains(i));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn verdict(&self, source: &str) -> Verdict {
        match self {
            Faults::Panicked(text) => Verdict::Crash(format!("the pipeline panics: {text}")),
            Faults::Refused(findings) => {
                let Some(first) = findings.first() else {
                    return Verdict::Crash("refused without a reason".into());
                };
                let line = first.labels.first().map_or(0, |l| l.span.line);
                let text = source.lines().nth((line as usize).wrapping_sub(1));
                let code = format!("{:?}", first.code);
                let place = format!("{} | {}", first.message, text.unwrap_or("").trim());
                // What the verifiers find in what was made is a fault, not a refusal.
                match code.as_str() {
                    "BrokenModule" | "BrokenBody" | "InvalidIr" | "Internal" => {
                        Verdict::Crash(format!("{code}: {place}"))
                    }
                    _ => Verdict::Refused { code, place },
                }
            }
        }
    }
}

/// All programs as one file, and each one's last line.
fn one_source(programs: &[CProgram]) -> (String, Vec<u32>) {
    let mut source = String::from(C_INCLUDES);
    let mut ends = Vec::new();
    for program in programs {
        source.push_str(&program.source);
        ends.push(source.lines().count() as u32);
    }
    (source, ends)
}

fn bitcode(source: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let mut child = Command::new(clang)
        .args(["-x", "c", "-", "-c", "-emit-llvm", "-o", "-", "-g", "-w"])
        .args(["-ffp-contract=off"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("clang does not start: {e}"))?;
    let written = child
        .stdin
        .take()
        .map(|mut input| input.write_all(source.as_bytes()));
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    match (output.status.success(), written) {
        (true, Some(Ok(()))) => Ok(output.stdout),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Asks for both derivatives of some of the programs.
fn attempt(bytes: &[u8], programs: &[CProgram], which: &[usize]) -> Result<Reply, Faults> {
    let wish = |i: usize, mode| GradRequest {
        function: programs[i].function.clone(),
        wrt: vec!["x".into(), "s".into()],
        mode,
        with_primal: true,
        ..GradRequest::default()
    };
    let both = |i: &usize| [wish(*i, Mode::Reverse), wish(*i, Mode::Forward)];
    let request = Request {
        inputs: vec![Input::new("programs.bc", bytes)],
        task: Task::Grad(GradTask {
            derivatives: which.iter().flat_map(both).collect(),
            beside: false,
        }),
        level: Level::O2,
        emit: vec![OutputKind::Bitcode],
        options: Options::default(),
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

fn load(
    reply: &Reply,
    programs: &[CProgram],
    verdicts: &[Option<Verdict>],
) -> Result<Compiled, String> {
    let bytes = reply.output(OutputKind::Bitcode).ok_or("no bitcode")?;
    let host = Host::parse(bytes, "made.bc").map_err(|d| d.message)?;
    let find = |program: &CProgram, mode| {
        let made = reply.derivatives.iter();
        let mut made = made.filter(|d| d.function == program.function && d.mode == mode);
        made.next().cloned()
    };
    let mut names = Vec::new();
    let mut derivatives = Vec::new();
    for (program, verdict) in std::iter::zip(programs, verdicts) {
        if verdict.is_some() {
            derivatives.push(None);
            continue;
        }
        let (vjp, jvp) = (find(program, Mode::Reverse), find(program, Mode::Forward));
        let both = vjp.zip(jvp).ok_or("a derivative is not listed")?;
        names.extend([
            program.function.clone(),
            both.0.name.clone(),
            both.1.name.clone(),
        ]);
        derivatives.push(Some(both));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let jit = Jit::new(host, &names).map_err(|d| d.message)?;
    Ok(Compiled { jit, derivatives })
}
