//! Each code of the table of checks has a page with a program that a check refuses.
//!
//! A program takes part if it marks a line by `refused here` or `warned of here`, or if it is LLVM's text, which has no
//! lines of a source. The program is differentiated twice. The first run reports the code at the line. The second run
//! skips all checks by a seeded fault, and has no such message: the diagnostic comes from a check. Emission may refuse
//! the program in other words. A check reports no other code than the code of its row, by an assertion of
//! gradus-analysis. The pages' commands are run by gradus-cli's `pages`.

use crate::support::{bitcode_of, calls, grad, run};
use gradus_analysis::CHECKS;
use gradus_ir::mutant::{Mutant, plant};
use gradus_ir::{Code, Diagnostic};
use gradus_pipeline::{GradRequest, Level, OutputKind};
use std::collections::BTreeSet;
use std::panic::catch_unwind;

/// Declarations for programs without includes of their own.
const PRELUDE: &str = "#include <math.h>\n#include <setjmp.h>\n#include <stdarg.h>\n#include <stdint.h>\n\
                       #include <stdlib.h>\n#include <string.h>\n#line 1\n";

/// Folder of `gradus.h`.
const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");

/// A program of a page.
struct Program<'p> {
    language: &'p str,
    source: &'p str,
    /// The marked line, from 1; `None` for LLVM's text.
    line: Option<u32>,
    /// The function to differentiate, unless the program has differentiation calls.
    function: &'p str,
    flags: Vec<&'p str>,
}

/// Returns the programs of a page that take part. The command below a program names function and flags.
fn programs(page: &str) -> Vec<Program<'_>> {
    let blocks: Vec<&str> = page.split("\n```").collect();
    let mut found = Vec::new();
    // A page alternates text and blocks.
    for (i, block) in blocks.iter().enumerate().skip(1).step_by(2) {
        let (opening, source) = block.split_once('\n').unwrap_or((block, ""));
        let is_marked =
            |line: &str| line.contains("refused here") || line.contains("warned of here");
        let line = source.lines().position(is_marked);
        let language = opening.split(' ').next().unwrap_or_default();
        if line.is_none() && language != "llvm" {
            continue;
        }
        let command = blocks
            .get(i + 2)
            .and_then(|block| block.strip_prefix("sh\n"));
        let command = command.filter(|_| blocks[i + 1].trim().is_empty());
        let mut words = command.unwrap_or_default().split_whitespace();
        let function = words.by_ref().skip_while(|word| *word != "-f").nth(1);
        found.push(Program {
            language,
            source,
            line: line.map(|line| line as u32 + 1),
            function: function.unwrap_or("f"),
            flags: words.skip_while(|word| *word != "--").skip(1).collect(),
        });
    }
    found
}

/// Returns the diagnostics of a program. A fault of the compiler reports nothing.
fn diagnostics(program: &Program<'_>, mutant: Option<Mutant>) -> Vec<Diagnostic> {
    let mut flags = vec!["-O2", "-g", "-Xclang", "-disable-llvm-passes", INCLUDE];
    flags.extend(&program.flags);
    let module = match program.language {
        "c" => bitcode_of("c", &format!("{PRELUDE}{}", program.source), &flags),
        "cpp" => bitcode_of("c++", program.source, &flags),
        _ => program.source.as_bytes().to_vec(),
    };
    let request = GradRequest {
        function: program.function.to_string(),
        ..GradRequest::default()
    };
    let task = match program.source.contains("gradus_vjp(") {
        true => calls(),
        false => grad(&[request]),
    };
    plant(mutant);
    let reply = catch_unwind(|| run(module, task, Level::O2, &[OutputKind::LlvmText]));
    plant(None);
    reply.map_or_else(|_| Vec::new(), |reply| reply.diagnostics)
}

/// Returns true if a check refuses the program with the code at the marked line.
fn is_refused_by_check(program: &Program<'_>, code: Code) -> bool {
    let found = diagnostics(program, None);
    let place = |found: &Diagnostic| found.labels.first().map(|label| label.span.line);
    let mut expected = found
        .iter()
        .filter(|found| found.code == code && place(found) == program.line)
        .peekable();
    if expected.peek().is_none() {
        return false;
    }
    let without_checks = diagnostics(program, Some(Mutant::ChecksSkipped));
    expected.any(|found| {
        without_checks
            .iter()
            .all(|other| other.message != found.message)
    })
}

#[test]
fn every_check_has_a_program_on_the_page_of_its_code() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnostics");
    let codes: BTreeSet<Code> = CHECKS.iter().map(|check| check.code).collect();
    let mut wrong = Vec::new();
    for code in codes {
        let path = format!("{folder}/{}.md", code.number());
        let page = std::fs::read_to_string(path).expect("a page for the code");
        let programs = programs(&page);
        if !programs
            .iter()
            .any(|program| is_refused_by_check(program, code))
        {
            let number = code.number();
            wrong.push(format!(
                "{number}: no check refuses one of {} programs",
                programs.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_checks_are_unique() {
    let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());
}
