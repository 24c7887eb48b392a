//! The pages of diagnostics are true: an example's commands are refused with the page's code at the marked
//! line, and the remedy's commands, run afterwards, succeed.
//!
//! A section of a page is a session in a folder (`session`). All but the last command of an example must succeed.
//! Pages whose example is an unnamed C block are covered by another test (gradus-testkit's `refusals`). The tests of
//! the manual are in `manual`.

mod manual;
mod session;

use gradus::Code;
use session::{Block, Session, blocks, command_with_outcome};
use std::path::{Path, PathBuf};
use std::process::Output;

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

fn prepared(page: &str) -> Session {
    let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{page}"));
    Session::new(at, Path::new(env!("CARGO_BIN_EXE_gradus")), &["gradus"])
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

fn check(code: Code, page: &str) -> Result<(), String> {
    let (example, remedy) = page.split_once("## What to do").ok_or("no remedy")?;
    let (example, remedy) = (blocks(example), blocks(remedy));
    let session = prepared(code.number());
    let mut typed = session.run(&example);
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
    let typed = session.run(&remedy);
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

/// Returns the text with all lines that begin with `prefix` replaced by `rows`.
fn with_rows(text: &str, prefix: &str, rows: &[String]) -> String {
    let is_row = |line: &&str| line.starts_with(prefix);
    let before = text.lines().take_while(|line| !is_row(line));
    let after = (text.lines().skip_while(|line| !is_row(line))).filter(|line| !is_row(line));
    let rows = rows.iter().map(String::as_str);
    let lines: Vec<&str> = before.chain(rows).chain(after).collect();
    lines.join("\n") + "\n"
}

#[test]
fn diagnostics_page_is_current() {
    let docs = pages().join("..");
    let titles = Code::ALL.iter().map(|code| {
        let number = code.number();
        let page = std::fs::read_to_string(pages().join(format!("{number}.md"))).expect("a page");
        let heading = page.lines().next().unwrap_or_default();
        let title = heading.strip_prefix(&format!("# {number}: "));
        let title = title.unwrap_or_else(|| panic!("{number}.md opens with its code and title"));
        (number, title.to_string())
    });
    let titles: Vec<(&str, String)> = titles.collect();
    let chapter = |(n, title): &(&str, String)| format!("    - [{n}: {title}](diagnostics/{n}.md)");
    let line = |(n, title): &(&str, String)| format!("{n}  {title}");
    let lists = [
        (
            "SUMMARY.md",
            "    - [GRD",
            titles.iter().map(chapter).collect::<Vec<_>>(),
        ),
        (
            "reference/diagnostics.md",
            "GRD",
            titles.iter().map(line).collect(),
        ),
    ];
    for (file, prefix, rows) in lists {
        let file = docs.join(file);
        let then = std::fs::read_to_string(&file).expect("a page of the manual");
        let now = with_rows(&then, prefix, &rows);
        if std::env::var_os("GRADUS_BLESS").is_some() {
            std::fs::write(&file, &now).expect("the page can be written");
        }
        let then = std::fs::read_to_string(&file).expect("a page of the manual");
        assert_eq!(
            then,
            now,
            "cargo xtask bless diagnostics_page writes {} anew",
            file.display()
        );
    }
}
