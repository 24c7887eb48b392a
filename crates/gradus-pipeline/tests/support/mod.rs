//! Test support: compiles C programs by clang, runs the pipeline, links and runs the output.
#![allow(dead_code)]

use gradus_pipeline::{
    CallsTask, GradRequest, GradTask, Input, Level, Options, OutputKind, Reply, Request, Task,
    compile,
};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Flags for clang, and the level of the late pipeline.
pub const LEVELS: &[(&[&str], Level)] = &[
    (&["-O0"], Level::O0),
    (&["-O1"], Level::O1),
    (&["-O2"], Level::O2),
    (&["-O3"], Level::O3),
    (
        &[
            "-O2",
            "-Xclang",
            "-disable-llvm-passes",
            "-fno-discard-value-names",
        ],
        Level::O2,
    ),
    (&["-O2", "-g"], Level::O2),
    (&["-O0", "-g"], Level::O3),
];

fn clang(cplusplus: bool) -> Command {
    let (variable, name) = match cplusplus {
        true => ("GRADUS_CLANGXX", "clang++-22"),
        false => ("GRADUS_CLANG", "clang-22"),
    };
    Command::new(std::env::var(variable).unwrap_or_else(|_| name.into()))
}

/// Returns the bitcode of a C program.
pub fn bitcode(source: &str, flags: &[&str]) -> Vec<u8> {
    bitcode_of("c", source, flags)
}

/// Returns the bitcode of a program in C (`c`) or C++ (`c++`).
pub fn bitcode_of(language: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    let mut child = clang(language == "c++")
        .args([
            "-x",
            language,
            "-",
            "-c",
            "-emit-llvm",
            "-fno-discard-value-names",
            "-o",
            "-",
            "-w",
        ])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("clang starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(source.as_bytes())
        .expect("written");
    let output = child.wait_with_output().expect("clang ends");
    assert!(
        output.status.success(),
        "clang refused the test's program:\n{source}"
    );
    output.stdout
}

/// Runs the pipeline on a module.
pub fn run(module: Vec<u8>, task: Task, level: Level, emit: &[OutputKind]) -> Reply {
    compile(&Request {
        inputs: vec![Input::new("test.bc", module)],
        task,
        level,
        emit: emit.to_vec(),
        report: true,
        options: Options {
            verify_each: true,
            ..Options::default()
        },
    })
}

/// Returns the task of a compiler driver: replace the calls.
pub fn calls() -> Task {
    Task::Calls(CallsTask::default())
}

/// Returns the task of adding derivatives.
pub fn grad(derivatives: &[GradRequest]) -> Task {
    Task::Grad(GradTask {
        derivatives: derivatives.to_vec(),
        beside: false,
    })
}

/// Returns the diagnostics of a reply, one per line.
pub fn findings(reply: &Reply) -> String {
    let lines = reply
        .diagnostics
        .iter()
        .map(|d| format!("{d}  help: {:?}", d.help));
    lines.collect::<Vec<_>>().join("\n")
}

/// Creates a folder unique to the test.
fn folder() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("gradus-pipeline-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&path).expect("a folder for the test");
    path
}

/// Links an object with further C sources, runs the program, and returns the output.
pub fn link_and_run(
    object: &[u8],
    others: &[(&str, &str)],
    flags: &[&str],
) -> Result<String, String> {
    let folder = folder();
    let object_path = folder.join("made.o");
    std::fs::write(&object_path, object).expect("written");
    let mut command = clang(false);
    for (name, text) in others {
        std::fs::write(folder.join(name), text).expect("written");
        if name.ends_with(".c") {
            command.arg(folder.join(name));
        }
    }
    let program = folder.join("program");
    let output = command
        .arg(&object_path)
        .args(flags)
        .args(["-w", "-I"])
        .arg(&folder)
        .args(["-lm", "-lstdc++", "-o"])
        .arg(&program)
        .output()
        .expect("clang starts");
    if !output.status.success() {
        return Err(format!("link: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let output = Command::new(&program).output().expect("the program starts");
    let _ = std::fs::remove_dir_all(&folder);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("{}: {text}", output.status)),
    }
}

/// C code available to every test program: a comparison with central differences that ends the program on a
/// mismatch.
pub const CHECK: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void near_(double got, double expected, const char *what, int line) {
    double scale = fabs(expected) > 1 ? fabs(expected) : 1;
    if (!(fabs(got - expected) <= 1e-6 * scale)) {
        printf("line %d: %s is %.12g, not %.12g\n", line, what, got, expected);
        exit(1);
    }
}
#define NEAR(got, expected) near_(got, expected, #got, __LINE__)
#define SLOPE(var, at, expr) ({ double h_ = 1e-6, var = (at) + h_, a_ = (expr); var = (at) - h_; double b_ = (expr); (a_ - b_) / (2 * h_); })
"#;

/// Runs the pipeline on a program with differentiation calls at every level, then runs the program, whose
/// `main` checks.
pub fn check_program(source: &str) {
    check_language("c", source);
}

/// Like [`check_program`], for C or C++.
pub fn check_language(language: &str, source: &str) {
    let source = format!("{CHECK}\n{source}");
    for (flags, level) in LEVELS {
        let module = bitcode_of(language, &source, flags);
        let emit = [OutputKind::LlvmText, OutputKind::Object];
        let reply = run(module, calls(), *level, &emit);
        let at = format!("{flags:?} {level:?}");
        let Some(object) = reply.output(OutputKind::Object) else {
            panic!("{at}: refused\n{}", findings(&reply));
        };
        assert!(reply.calls_replaced > 0, "{at}: no call was found");
        let text = reply.text(OutputKind::LlvmText).expect("text");
        for symbol in [
            "@enzyme_",
            "@gradus_",
            "__enzyme_autodiff(",
            "__enzyme_fwddiff(",
        ] {
            assert!(
                !text
                    .lines()
                    .any(|l| l.contains(symbol) && !l.contains("c\"")),
                "{at}: {symbol}"
            );
        }
        if let Err(why) = link_and_run(object, &[], &[]) {
            panic!("{at}: {why}\n{text}");
        }
    }
}

/// Runs the pipeline on a program that must be refused, at the first level. Returns the reply.
pub fn refused(source: &str) -> Reply {
    let module = bitcode(&format!("{CHECK}\n{source}"), &["-O1", "-g"]);
    let reply = run(module, calls(), Level::O1, &[OutputKind::Object]);
    assert!(
        reply.has_errors() && reply.outputs.is_empty(),
        "not refused:\n{source}"
    );
    reply
}
