//! Reproducers: archives with all inputs of a compilation, to be replayed on another machine and by a later
//! version.
//!
//! A tar file with, in order: `README.txt`; `versions.txt` (Gradus's, the compiler's); `command.txt` (the
//! command line, a word per line); `outcome.txt` (the diagnostics); and a folder `0`, `1` … for each
//! request to the compiling process. A folder has `request.json` (the task and its options, by name) and
//! the modules `input0.bc` …. Sources are not included: the passes see modules only.

use crate::settings::{Language, Settings};
use crate::temp_files::random_suffix;
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::Request;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const README: &str = "\
This archive reproduces a diagnostic of Gradus:

    gradus bug-report --replay THIS_FILE

The archive holds the program as LLVM bitcode, the request, the command line and versions. The
source text is not included, but names are, and bitcode can be disassembled.
";

/// The maximum size of an archive to read.
const ARCHIVE_BYTES_MAX: u64 = 4 << 30;

/// Returns a new path for an archive, in the folder of temporary files.
pub(crate) fn place(settings: &Settings) -> PathBuf {
    let name = format!("gradus-reproducer-{}.tar", random_suffix());
    settings.temp.join(name)
}

fn broken(error: impl std::fmt::Display) -> Diagnostic {
    let message = format!("cannot read the archive: {error}");
    Diagnostic::error(Code::UnreadableInput, message)
        .help("pass a file that `gradus bug-report` wrote")
}

/// Returns an archive of requests and their diagnostics.
///
/// # Errors
/// `FileAccess` if the archive cannot be created.
pub fn pack(
    settings: &Settings,
    requests: &[Request],
    outcome: &[Diagnostic],
) -> Result<Vec<u8>, Diagnostic> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes)
    };
    let mut all = || -> std::io::Result<()> {
        add("README.txt".into(), README.as_bytes())?;
        add("versions.txt".into(), versions(settings).as_bytes())?;
        add("command.txt".into(), settings.command.join("\n").as_bytes())?;
        let lines: Vec<String> = outcome.iter().map(|d| format!("{d}\n")).collect();
        add("outcome.txt".into(), lines.concat().as_bytes())?;
        for (number, request) in requests.iter().enumerate() {
            let mut request = request.clone();
            for (i, input) in request.inputs.iter_mut().enumerate() {
                let bytes = std::mem::take(&mut input.bytes);
                add(format!("{number}/input{i}.bc"), &bytes)?;
            }
            let text = serde_json::to_vec_pretty(&request)?;
            add(format!("{number}/request.json"), &text)?;
        }
        Ok(())
    };
    all().and_then(|()| archive.into_inner()).map_err(|e| {
        let message = format!("cannot create the reproducer: {e}");
        Diagnostic::error(Code::FileAccess, message)
    })
}

/// Returns the requests of an archive.
///
/// # Errors
/// `UnreadableInput`.
pub fn unpack(bytes: &[u8]) -> Result<Vec<Request>, Diagnostic> {
    let mut archive = tar::Archive::new(bytes);
    let mut requests: Vec<Request> = Vec::new();
    let mut modules: Vec<Vec<u8>> = Vec::new();
    for entry in archive.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.display().to_string();
        let mut content = Vec::new();
        let read = entry.take(ARCHIVE_BYTES_MAX).read_to_end(&mut content);
        read.map_err(broken)?;
        let Some((_, file)) = name.split_once('/') else {
            continue;
        };
        if file != "request.json" {
            modules.push(content);
            continue;
        }
        let mut request: Request = serde_json::from_slice(&content).map_err(broken)?;
        if request.inputs.len() != modules.len() {
            return Err(broken("a module is missing"));
        }
        for (input, module) in request.inputs.iter_mut().zip(modules.drain(..)) {
            input.bytes = module;
        }
        requests.push(request);
    }
    match requests.is_empty() {
        true => Err(broken("the archive holds no request")),
        false => Ok(requests),
    }
}

/// Returns the versions of Gradus and of the compiler.
fn versions(settings: &Settings) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let compiler = settings.compiler(Language::C).ok().and_then(|clang| {
        let mut asked = Command::new(clang);
        asked
            .arg("--version")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let output = asked.output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let compiler = compiler.unwrap_or_else(|| "no compiler was found\n".to_string());
    format!("gradus {own}\n{compiler}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_pipeline::{GradRequest, GradTask, Input, Task};

    fn settings() -> Settings {
        Settings {
            clang: None,
            flang: None,
            path: Vec::new(),
            environment: Vec::new(),
            include: None,
            store: std::env::temp_dir(),
            temp: std::env::temp_dir(),
            program: "gradus".into(),
            child: "gradus".into(),
            limits: Default::default(),
            progress: Default::default(),
            leftovers: Default::default(),
            command: vec!["gradus".into(), "grad".into()],
            record: None,
        }
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        let one = Request {
            inputs: vec![
                Input::new("a.c", *b"BC\xc0\xde\x00"),
                Input::new("b.c", *b""),
            ],
            task: Task::Grad(GradTask {
                derivatives: vec![GradRequest {
                    function: "f".into(),
                    ..GradRequest::default()
                }],
                beside: true,
            }),
            ..Request::default()
        };
        let two = Request {
            inputs: vec![Input::new("c.c", *b"text")],
            ..Request::default()
        };
        let requests = [one, two];
        let bytes = pack(&settings(), &requests, &[]).expect("packed");
        assert_eq!(unpack(&bytes).expect("unpacked"), requests);
        assert_eq!(bytes, pack(&settings(), &requests, &[]).expect("again"));
    }

    #[test]
    fn what_is_no_archive_is_a_finding() {
        let bytes = pack(&settings(), &[Request::default()], &[]).expect("packed");
        for wrong in [&b""[..], b"text", &bytes[..700], &[0; 1024]] {
            let finding = unpack(wrong).expect_err("no archive");
            assert_eq!(finding.code, Code::UnreadableInput);
        }
    }
}
