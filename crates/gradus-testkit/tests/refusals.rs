//! The remedies of refusals: the example of a diagnostic's page is refused with its code at the marked
//! line, and the remedy's program is differentiated correctly.
//!
//! A page takes part if its example says `refused here` in a block without a file name; both programs
//! define `double f(int n, double *x, double s)`. Other pages show sessions, covered by gradus-cli's
//! `pages`.

use gradus_ir::Code;
use gradus_testkit::{CProgram, ROUTES, Verdict, check_c};
use std::collections::BTreeSet;

/// Fewer pages would mean that pages are not found.
const PAGES_MIN: usize = 7;

/// Returns the first C program of a page's section.
fn program(part: &str) -> Option<CProgram> {
    let (_, rest) = part.split_once("```c\n")?;
    let (source, _) = rest.split_once("```")?;
    Some(CProgram {
        source: format!("#include <setjmp.h>\n#include <stdarg.h>\n{source}"),
        function: "f".into(),
        contents: BTreeSet::new(),
        single: false,
        refused_with: None,
    })
}

fn verdict(program: CProgram) -> Verdict {
    let found = check_c(&[program], ROUTES[1]).map(|mut all| all.remove(0));
    found.unwrap_or_else(Verdict::Crash)
}

fn check(code: Code, example: &str, remedy: &str) -> Result<(), String> {
    let number = code.number();
    let refused = program(example).ok_or(format!("{number}: the example is no C"))?;
    let own = format!("{code:?}");
    match verdict(refused) {
        Verdict::Refused { code, place } if code == own && place.contains("refused here") => {}
        other => return Err(format!("{number}: the example gives {other:?}")),
    }
    match program(remedy).map(verdict) {
        Some(Verdict::Right) => Ok(()),
        other => Err(format!("{number}: the remedy gives {other:?}")),
    }
}

#[test]
fn remedies_of_pages_work() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnostics");
    let (mut checked, mut wrong) = (0, Vec::new());
    for &code in Code::ALL {
        let page = std::fs::read_to_string(format!("{folder}/{}.md", code.number())).unwrap();
        let (example, remedy) = page.split_once("## What to do").unwrap();
        if example.contains("refused here") && example.contains("```c\n") {
            checked += 1;
            wrong.extend(check(code, example, remedy).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= PAGES_MIN, "{checked}");
}
