//! The pages of diagnostics are true: an example's commands are refused with the page's code at the marked
//! line, and the remedy's commands, run afterwards, succeed. The guide's commands succeed, too.
//!
//! A section of a page is a session in a folder: a block ```` ```c energy.c ```` is a file, a block ````
//! ```sh ```` is a list of commands. All but the last command of an example must succeed. Pages whose
//! example is an unnamed C block are covered by another test (gradus-testkit's `refusals`).

use gradus::Code;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Codes that no user program causes, with reasons.
const CODES_WITHOUT_EXAMPLE: &[(Code, &str)] = &[
    (
        Code::CompilerDied,
        "a fault of ours; a process is killed in `robust`",
    ),
    (Code::BrokenOutput, "a fault of ours"),
    (
        Code::BadText,
        "the text form is read by our own tests alone",
    ),
    (Code::BrokenRule, "a fault of ours"),
];

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnostics")
}

/// A block of a page: the text after the opening, and the content.
type Block<'a> = (&'a str, String);

fn blocks(part: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut open = false;
    for line in part.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(info), false) => {
                found.push((info.trim(), String::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                if let Some((_, text)) = found.last_mut() {
                    *text += line;
                    text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    found
}

/// Returns the marked line of a file.
fn mark(blocks: &[Block<'_>]) -> Option<String> {
    blocks.iter().find_map(|(info, text)| {
        let (_, name) = info.split_once(' ')?;
        let is_marked = |line: &str| {
            ["refused here", "warned of here"]
                .iter()
                .any(|m| line.contains(m))
        };
        let line = text.lines().position(is_marked)?;
        Some(format!("{name}:{}", line + 1))
    })
}

/// Writes a section's files and runs its commands. Returns the output of each.
fn run_session(folder: &Path, blocks: &[Block<'_>]) -> Vec<(String, Output)> {
    let mut outputs = Vec::new();
    for (info, text) in blocks {
        if let Some((_, name)) = info.split_once(' ') {
            let path = folder.join("work").join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        for line in text.lines().filter(|_| *info == "sh") {
            let path = std::env::var("PATH").unwrap_or_default();
            let output = Command::new("sh")
                .args(["-c", line])
                .env("PATH", format!("{}:{path}", folder.join("bin").display()))
                .env("TMPDIR", folder.join("tmp"))
                .current_dir(folder.join("work"))
                .output();
            outputs.push((line.to_owned(), output.expect("a shell runs")));
        }
    }
    outputs
}

fn prepared(page: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{page}"));
    let _ = std::fs::remove_dir_all(&folder);
    for inner in ["bin", "work", "tmp"] {
        std::fs::create_dir_all(folder.join(inner)).expect("a folder");
    }
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, folder.join("bin").join(name)).expect("a link");
    };
    link(Path::new(env!("CARGO_BIN_EXE_gradus")), "gradus");
    if let Some(clang) = std::env::var_os("GRADUS_CLANG") {
        link(Path::new(&clang), "clang-22");
    }
    folder
}

/// Returns true if the output has a code in the form required of a page's example.
fn reports_code(output: &Output, code: Code) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let of = |word: &str| said.contains(&format!("{word}[{}]", code.number()));
    match code {
        Code::NotFinite => output.status.success() && of("warning"),
        Code::ParallelNotRaised => output.status.success() && (of("note") || of("warning")),
        Code::LimitReached => output.status.code() == Some(3) && of("error"),
        _ => output.status.code() == Some(1) && of("error"),
    }
}

/// Formats a command with its outcome.
fn command_with_outcome(line: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    format!("`{line}`: {}\n{said}", output.status)
}

fn check(code: Code, page: &str) -> Result<(), String> {
    let (example, remedy) = page.split_once("## What to do").ok_or("no remedy")?;
    let (example, remedy) = (blocks(example), blocks(remedy));
    let folder = prepared(code.number());
    let mut typed = run_session(&folder, &example);
    let (line, last) = typed.pop().ok_or("nothing is typed")?;
    if let Some((line, output)) = typed.iter().find(|(_, output)| !output.status.success()) {
        return Err(format!("before: {}", command_with_outcome(line, output)));
    }
    if !reports_code(&last, code) {
        return Err(format!(
            "the example: {}",
            command_with_outcome(&line, &last)
        ));
    }
    if let Some(place) = mark(&example) {
        let said = String::from_utf8_lossy(&last.stderr).into_owned();
        if !said.contains(&place) {
            return Err(format!("the example's line is not {place}: {said}"));
        }
    }
    let typed = run_session(&folder, &remedy);
    let bad = typed.iter().find(|(_, output)| {
        let said = String::from_utf8_lossy(&output.stderr);
        !output.status.success() || said.contains(code.number())
    });
    match (bad, typed.is_empty()) {
        (Some((line, output)), _) => Err(format!(
            "the remedy: {}",
            command_with_outcome(line, output)
        )),
        (None, true) => Err("the remedy is not shown".into()),
        (None, false) => Ok(()),
    }
}

#[test]
fn diagnostic_pages_are_true() {
    let (mut wrong, mut elsewhere) = (Vec::new(), 0);
    for &code in Code::ALL {
        let number = code.number();
        let page = std::fs::read_to_string(pages().join(format!("{number}.md"))).expect("a page");
        let is_session = blocks(&page).iter().any(|(info, _)| *info == "sh");
        let is_aside = CODES_WITHOUT_EXAMPLE
            .iter()
            .any(|(aside, _)| *aside == code);
        match (is_session, is_aside) {
            (true, false) => {
                wrong.extend(check(code, &page).err().map(|e| format!("{number}: {e}")))
            }
            (true, true) => wrong.push(format!("{number} is followed after all")),
            (false, true) => {}
            // Covered by the other test.
            (false, false) if page.contains("refused here") => elsewhere += 1,
            (false, false) => wrong.push(format!("{number} shows no session")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(elsewhere < 10, "{elsewhere}");
}

#[test]
fn guide_commands_succeed() {
    for (name, commands_min) in [("guide", 4), ("report", 3)] {
        let page = pages().join(format!("../{name}.md"));
        let page = std::fs::read_to_string(page).expect("the page");
        let typed = run_session(&prepared(name), &blocks(&page));
        assert!(typed.len() >= commands_min, "{}", typed.len());
        for (line, output) in typed {
            assert!(
                output.status.success(),
                "{}",
                command_with_outcome(&line, &output)
            );
        }
    }
}
