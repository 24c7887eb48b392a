//! The drivers do what clang does: same files, same output, same exit status; and every function
//! through the language in the middle and back changes nothing.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{folder, text};

fn gradus(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command
        .args(args)
        .current_dir(folder)
        .output()
        .expect("gradus runs")
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

fn run(folder: &Path, program: &str) -> (String, i32) {
    let output = Command::new(folder.join(program))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code().unwrap_or(-1))
}

const MAIN: &str = "#include <stdio.h>\nint twice(int);\nint main(void) { printf(\"%d\\n\", twice(21)); return 3; }\n";
const TWICE: &str = "int twice(int x) { return 2 * x; }\n";

#[test]
fn one_step_two_steps_and_several_files() {
    let at = folder("steps");
    write(&at, "main.c", MAIN);
    write(&at, "twice.c", TWICE);
    assert!(
        gradus(&at, &["cc", "-O2", "main.c", "twice.c", "-o", "one"])
            .status
            .success()
    );
    assert!(
        gradus(&at, &["cc", "-c", "main.c", "twice.c"])
            .status
            .success()
    );
    assert!(
        gradus(&at, &["cc", "main.o", "twice.o", "-o", "two"])
            .status
            .success()
    );
    for program in ["one", "two"] {
        assert_eq!(run(&at, program), ("42\n".to_string(), 3), "{program}");
    }
    assert!(
        std::fs::read_dir(&at).expect("listed").count() == 6,
        "nothing else is left"
    );
}

#[test]
fn errors_and_warnings_are_clangs_and_said_once() {
    let at = folder("said");
    write(&at, "bad.c", "int main(void) { return x; }\n");
    let bad = gradus(&at, &["cc", "bad.c"]);
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(
        text(&bad.stderr).matches("undeclared identifier").count(),
        1
    );
    write(&at, "odd.c", "int main(void) { int x; return 0; }\n");
    let odd = gradus(&at, &["cc", "-Wall", "odd.c", "-o", "odd"]);
    assert!(odd.status.success());
    assert_eq!(text(&odd.stderr).matches("unused variable").count(), 1);
    assert_eq!(gradus(&at, &["cc", "missing.c"]).status.code(), Some(1));
}

#[test]
fn what_is_no_compilation_passes_through() {
    let at = folder("through");
    write(&at, "twice.c", TWICE);
    assert!(text(&gradus(&at, &["cc", "--version"]).stdout).contains("clang version"));
    assert!(text(&gradus(&at, &["cc", "-E", "twice.c"]).stdout).contains("int twice"));
    assert!(gradus(&at, &["cc", "-S", "twice.c"]).status.success());
    let assembly = std::fs::read_to_string(at.join("twice.s")).expect("assembly");
    assert!(assembly.contains("twice:"));
    assert!(
        gradus(&at, &["cc", "-MD", "-c", "twice.c"])
            .status
            .success()
    );
    assert!(at.join("twice.d").exists());
}

#[test]
fn our_header_is_found() {
    let at = folder("header");
    let asks = "#include <gradus.h>\ndouble f(double);\n\
        double g(double x) { return gradus_vjp_double(f, gradus_out, x); }\n";
    for (name, driver) in [("a.c", "cc"), ("a.cpp", "c++")] {
        write(&at, name, asks);
        let seen = gradus(&at, &[driver, "-E", name]);
        assert!(
            text(&seen.stdout).contains("gradus_dupnoneed"),
            "{}",
            text(&seen.stderr)
        );
    }
}

#[test]
fn every_function_there_and_back_changes_nothing() {
    let at = folder("back");
    write(
        &at,
        "main.cpp",
        "#include <vector>\n#include <stdexcept>\n#include <cstdio>\n\
        static int sum(const std::vector<int> &v, int most) {\n\
          int s = 0; for (int x : v) { s += x; if (s > most) throw std::runtime_error(\"most\"); } return s; }\n\
        int main() { std::vector<int> v; for (int i = 0; i < 9; i++) v.push_back(i * i);\n\
          try { std::printf(\"%d\\n\", sum(v, 1000)); sum(v, 50); } catch (const std::exception &e) { std::printf(\"%s\\n\", e.what()); } }\n",
    );
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let built = gradus(
            &at,
            &[
                "c++",
                "--restructure-all",
                level,
                "-g",
                "main.cpp",
                "-o",
                "main",
            ],
        );
        assert!(built.status.success(), "{}", text(&built.stderr));
        assert_eq!(run(&at, "main"), ("204\nmost\n".to_string(), 0), "{level}");
    }
}

#[test]
fn explain_knows_its_pages_and_wrong_words_are_findings() {
    let at = folder("words");
    let page = text(&gradus(&at, &["explain", "GRD0005"]).stdout);
    assert!(page.starts_with("# GRD0005: "));
    assert!(text(&gradus(&at, &["explain", "5"]).stdout) == page);
    let list = text(&gradus(&at, &["explain"]).stdout);
    assert!(list.lines().count() >= 35);
    for words in [
        &["explain", "9999"][..],
        &["gard"],
        &["grad"],
        &["grad", "x.c"],
        &["check", "x.c", "-f"],
        &["dev"],
    ] {
        let output = gradus(&at, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text(&output.stderr).contains("error[GRD0035]"), "{words:?}");
    }
}
