//! The drivers behave like clang: equal files, equal output, equal exit status. The round trip of every
//! function through the IR changes nothing.

use crate::support::{folder, shell, text};
use std::path::Path;
use std::process::{Command, Output};

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
fn diagnostics_are_clangs() {
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
fn noncompilations_pass_through() {
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
    let plan = gradus(&at, &["cc", "-###", "twice.c"]);
    assert!(plan.status.success());
    assert!(
        text(&plan.stderr).contains("\"-cc1\""),
        "{}",
        text(&plan.stderr)
    );
    assert!(!at.join("a.out").exists());
}

#[test]
fn closed_pipe_is_silent() {
    use std::io::Read;
    use std::process::Stdio;
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(["cc", "--help"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("gradus runs");
    let mut begin = [0; 8];
    let mut printed = child.stdout.take().expect("a pipe");
    printed.read_exact(&mut begin).expect("it prints");
    drop(printed);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(141));
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
fn round_trip_changes_nothing() {
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

/// A network whose numbers are in a block behind its structure, with functions in another file than the
/// differentiation call: when that file is compiled alone, diagnostics wait for the other files.
#[test]
fn refusals_are_deferred_to_link() {
    let at = folder("waits");
    write(
        &at,
        "net.h",
        "typedef struct { int inputs; double *weight, *output; } net;
net *net_init(int inputs);
double net_run(net *n, const double *inputs);
void net_learn(net *n, const double *inputs, const double *wanted);\n",
    );
    write(
        &at,
        "net.c",
        "#include \"net.h\"
#include <math.h>
#include <stdlib.h>
#include <string.h>
net *net_init(int inputs)
{
    net *n = malloc(sizeof *n + sizeof(double) * (2 * inputs + 1));
    n->inputs = inputs;
    n->weight = (double *)((char *)n + sizeof *n);
    n->output = n->weight + inputs;
    return n;
}
double net_run(net *n, const double *inputs)
{
    double sum = 0;
    memcpy(n->output, inputs, sizeof(double) * n->inputs);
    for (int i = 0; i < n->inputs; i++)
        sum += n->weight[i] * n->output[i];
    return n->output[n->inputs] = tanh(sum);
}
void net_learn(net *n, const double *inputs, const double *wanted)
{
    double off = net_run(n, inputs) - *wanted;
    for (int i = 0; i < n->inputs; i++)
        n->weight[i] -= off * n->output[i];
}\n",
    );
    write(
        &at,
        "ask.c",
        "#include \"net.h\"
#include <gradus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
double learnt(const double *w, int steps)
{
    const double input[3][2] = {{0, 1}, {1, 0}, {1, 1}}, wanted[3] = {0.5, -0.25, 0.125};
    net *n = net_init(2);
    for (int i = 0; i < 2; i++)
        n->weight[i] = w[i];
    for (int k = 0; k < steps; k++)
        net_learn(n, input[k % 3], &wanted[k % 3]);
    double result = n->weight[0] + net_run(n, input[2]);
    free(n);
    return result;
}
int main(void)
{
    double w[2] = {0.3, -0.2}, adj[2] = {0}, worst = 0;
    gradus_vjp(learnt, gradus_dup, w, adj, gradus_const, 7);
    for (int i = 0; i < 2; i++) {
        double tan[2] = {i == 0, i == 1}, h = 1e-5, at = w[i];
        double forward = gradus_jvp_double(learnt, gradus_dup, w, tan, gradus_const, 7);
        w[i] = at + h;
        double right = learnt(w, 7);
        w[i] = at - h;
        double slope = (right - learnt(w, 7)) / (2 * h);
        w[i] = at;
        worst = fmax(worst, fmax(fabs(adj[i] - forward) * 1e4, fabs(slope - forward)));
    }
    printf(\"%d\\n\", adj[0] != 0 && worst < 1e-8);
    return 0;
}\n",
    );
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for line in [["cc", level, "-c", "ask.c"], ["cc", level, "-c", "net.c"]] {
            let output = gradus(&at, &line);
            assert!(output.status.success(), "{line:?}");
        }
        let output = gradus(&at, &["cc", "ask.o", "net.o", "-lm", "-o", "asked"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{level}: {said}");
        assert_eq!(run(&at, "asked"), ("1\n".to_string(), 0), "{level}");
    }
}

const SUM: &str = "double sum(const double *x, int n) { double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  return s; }
";
const SUMS: &str = "#include <stdio.h>
double sum(const double *, int);
int main(void) { double x[9]; for (int i = 0; i < 9; i++) x[i] = i;
  printf(\"%g\\n\", sum(x, 9)); return 0; }
";

const ASKING: &str = "double __enzyme_autodiff(void *, ...);
double sum(const double *, int);
extern int enzyme_dup, enzyme_const;
int main(void) { double x[2] = {1, 2}, d[2] = {0};
  __enzyme_autodiff((void *)sum, enzyme_dup, x, d, enzyme_const, 2); return d[1] != 4; }
";

/// Objects for LTO are bitcode: the runtime library is linked for their parallel code, too.
#[test]
fn lto_links_the_runtime() {
    let at = folder("lto");
    write(&at, "sum.c", SUM);
    write(&at, "main.c", SUMS);
    for how in ["-flto", "-flto=thin"] {
        let whole = format!("gradus cc {how} -O2 -fopenmp main.c sum.c -o one");
        let parts = format!("gradus cc {how} -O2 -fopenmp -c main.c sum.c");
        let linked = format!("gradus cc {how} -O2 -fopenmp main.o libsum.a -o two");
        for command in [
            &whole,
            &parts,
            "rm -f libsum.a",
            "llvm-ar-22 rcs libsum.a sum.o",
            &linked,
        ] {
            shell(&at, command);
        }
        for program in ["one", "two"] {
            assert_eq!(run(&at, program), ("204\n".to_string(), 0), "{how}");
        }
    }
}

/// LTO bitcode carries no module for differentiation at the link: a derivative that needs other files is
/// refused during compilation.
#[test]
fn lto_refuses_cross_file_derivatives() {
    let at = folder("lto-derived");
    write(&at, "sum.c", SUM);
    write(&at, "main.c", ASKING);
    let line = "cc -flto -O2 -fopenmp main.c sum.c -o program";
    let said = crate::support::refuses(&at, line, "GRD0005");
    assert!(said.contains("without `-flto`"), "{said}");
    shell(&at, "gradus cc -O2 -fopenmp main.c sum.c -o program");
    assert_eq!(run(&at, "program").1, 0);
    write(
        &at,
        "both.c",
        &ASKING.replace("double sum(const double *, int);", SUM),
    );
    shell(&at, "gradus cc -flto -O2 -fopenmp both.c -o program");
    assert_eq!(run(&at, "program").1, 0);
}

/// LTO does not take the module carried by an object for the object's code.
#[test]
fn carried_modules_are_not_linked() {
    let at = folder("lto-mixed");
    write(
        &at,
        "both.c",
        &ASKING.replace("double sum(const double *, int);", SUM),
    );
    shell(&at, "gradus cc -O2 -fopenmp -c both.c");
    shell(&at, "gradus cc -O2 -flto -fopenmp both.o -o program");
    assert_eq!(run(&at, "program").1, 0);
}

/// Objects of any name, and thin archives, are searched like all others.
#[test]
fn all_object_kinds_link_the_runtime() {
    let at = folder("objects");
    write(&at, "sum.c", SUM);
    write(&at, "main.c", SUMS);
    std::fs::create_dir(at.join("parts")).expect("made");
    for (object, archive) in [("sum.obj", ""), ("sum", ""), ("parts/sum.o", "libthin.a")] {
        shell(&at, &format!("gradus cc -O2 -fopenmp -c sum.c -o {object}"));
        let linked = match archive {
            "" => object,
            _ => {
                shell(&at, &format!("ar rcsT {archive} {object}"));
                "-L. -lthin"
            }
        };
        shell(&at, &format!("gradus cc main.c {linked} -o program"));
        assert_eq!(run(&at, "program"), ("204\n".to_string(), 0), "{object}");
    }
}

#[test]
fn source_from_standard_input() {
    let at = folder("typed");
    write(&at, "both.c", &format!("{SUM}{SUMS}"));
    let feed = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
        let source = std::fs::File::open(at.join("both.c")).expect("opened");
        command.args(args).current_dir(&at).stdin(source);
        command.output().expect("gradus runs")
    };
    let report = "cc -O2 -fopenmp --par-report -x c - -o program";
    let output = feed(&report.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("<stdin>:2"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(run(&at, "program"), ("204\n".to_string(), 0));
    let output = feed(&["cc", "-O2", "-x", "c", "-", "-o", "serial"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(run(&at, "serial"), ("204\n".to_string(), 0));
}

/// A precompiled header is accepted at each level, also if the module goes through Gradus's passes.
#[test]
fn pch_and_split_dwarf() {
    let at = folder("precompiled");
    write(&at, "sums.h", "double sum(const double *x, int n);\n");
    write(&at, "both.c", &format!("{SUM}{SUMS}"));
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let header = format!("gradus cc {level} -fopenmp -x c-header sums.h -o sums.h.pch");
        shell(&at, &header);
        let build = format!("gradus cc {level} -fopenmp -include-pch sums.h.pch both.c -o program");
        shell(&at, &build);
        assert_eq!(run(&at, "program"), ("204\n".to_string(), 0), "{level}");
    }
    shell(
        &at,
        "gradus cc -O2 -g -gsplit-dwarf -fopenmp -c both.c -o both.o",
    );
    assert!(at.join("both.dwo").exists());
    shell(&at, "gradus cc -O2 -fopenmp both.o -o program");
    assert_eq!(run(&at, "program"), ("204\n".to_string(), 0));
}
