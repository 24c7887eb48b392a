//! `--progress`: one line on standard error, rewritten in place and erased at the end; nothing without a terminal.

use crate::support::{folder, gradus, text, write};

const PROGRAM: &str = "\
double inner(const double *x, int n);
double outer(const double *x, int n) { return inner(x, n) * inner(x, n); }
__attribute__((noinline)) double inner(const double *x, int n)
{ double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i] * x[i]; return s; }
";

const ERASE: &str = "\r\x1b[2K";

#[test]
fn the_line_shows_phase_and_function_and_goes_away() {
    let at = folder("progress");
    write(&at, "p.c", PROGRAM);
    let output = gradus(&at, "grad p.c -f outer --progress=always -- -O0");
    assert!(output.status.success());
    let said = text(&output.stderr);
    for step in [
        "gradus: compile p.c",
        "gradus: differentiate outer (1 of ",
        "gradus: differentiate inner (2 of ",
        "gradus: generate code",
    ] {
        assert!(said.contains(&format!("{ERASE}{step}")), "{step}\n{said:?}");
    }
    assert!(said.ends_with(ERASE), "{said:?}");
    assert!(!said.contains('\n'), "one line: {said:?}");
    assert!(!said.contains('\u{1e}'), "{said:?}");
    assert!(text(&output.stdout).contains("outer (p.c:2): VJP"));
}

/// Diagnostics follow an erased line.
#[test]
fn diagnostics_have_lines_of_their_own() {
    let at = folder("progress_refused");
    write(
        &at,
        "p.c",
        &PROGRAM
            .replace("x[i] * x[i] * x[i]", "table(x[i])")
            .replace("double outer", "double table(double);\ndouble outer"),
    );
    let output = gradus(&at, "grad p.c -f outer --progress always -- -O0");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let (before, _) = said
        .split_once("error")
        .unwrap_or_else(|| panic!("{said:?}"));
    let before = before.trim_end_matches("\x1b[1m\x1b[91m");
    assert!(before.ends_with(ERASE), "{said:?}");
}

#[test]
fn nothing_without_a_terminal() {
    let at = folder("progress_none");
    write(&at, "p.c", PROGRAM);
    for option in ["", "--progress=auto", "--progress=never"] {
        let output = gradus(&at, &format!("grad p.c -f outer {option}"));
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{option}"
        );
    }
    let output = gradus(&at, "grad p.c -f outer --progress=sometimes");
    assert!(text(&output.stderr).contains("GRD0035"));
}
