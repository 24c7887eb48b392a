//! Programs with very many branches and exits: the tape is a single block, and the gradient is right.

use crate::support::{CHECK, bitcode, findings, grad, link_and_run, run};
use gradus_pipeline::{GradRequest, Input, Level, Options, OutputKind, Reply, Request, compile};

const MAIN: &str = "
extern double f(const double *);
int main(void) {
    double x[4] = {0.3, 0.7, 0.4, 0.9}, g[4] = {0};
    f_vjp(x, g, 1.0);
    for (int i = 0; i < 4; i++) { double at = x[i]; NEAR(g[i], SLOPE(t, at, (x[i] = t, f(x)))); x[i] = at; }
}";

/// Compares the gradient of `f` with finite differences. Returns the derivative as LLVM text.
fn checked(source: &str) -> String {
    let wish = GradRequest {
        function: "f".into(),
        ..GradRequest::default()
    };
    let emit = [OutputKind::Object, OutputKind::Header, OutputKind::LlvmText];
    let reply = run(bitcode(source, &["-O0"]), grad(&[wish]), Level::O0, &emit);
    compare(&reply);
    let text = reply.text(OutputKind::LlvmText).expect("the text");
    let start = text.find("define internal void @__gradus1_vjp");
    text[start.expect("a derivative")..].to_string()
}

/// Compares the gradient in a reply with finite differences.
fn compare(reply: &Reply) {
    let Some(object) = reply.output(OutputKind::Object) else {
        panic!("refused\n{}", findings(reply));
    };
    let header = reply.text(OutputKind::Header).expect("a header");
    let main = format!("{CHECK}\n#include \"made.h\"\n{MAIN}");
    let files = [("made.h", header), ("main.c", main.as_str())];
    if let Err(why) = link_and_run(object, &files, &[]) {
        panic!("{why}");
    }
}

/// Returns a program of n consecutive statements.
fn straight(n: usize) -> String {
    let mut text =
        String::from("#include <math.h>\ndouble f(const double *x) { double a = x[0], b = x[1];\n");
    for i in 0..n / 2 {
        text += &format!(
            "a = 0.6 * a * b + x[{}]; b = sin(b) / (1.5 + a * a) + 0.1 * x[{}];\n",
            i % 4,
            (i * 3) % 4
        );
    }
    text + "return a + b; }\n"
}

/// Returns the number of lines of each emitted function in a unit's text.
fn lengths(text: &str) -> Vec<usize> {
    let ours = text.split("\nfunc @__gradus1_").skip(1);
    let lines = ours.map(|function| function.lines().take_while(|line| *line != "}").count());
    lines.collect()
}

/// Returns a program of n two-armed branches whose arms save values.
fn branches(n: usize) -> String {
    let mut text =
        String::from("#include <math.h>\ndouble f(const double *x) { double a = x[0], b = x[1];\n");
    for i in 0..n {
        text += &format!(
            "if (a > b * x[{}]) a = 0.4 * a * x[{}] + 0.1; else b = 0.7 * b + cos(a) * x[{}];\n",
            i % 4,
            (i * 3) % 4,
            (i + 2) % 4
        );
    }
    text + "return a + b; }\n"
}

/// Returns a program of n exits to a label; the middle exit is taken.
fn exits(n: usize) -> String {
    let mut text =
        String::from("#include <math.h>\ndouble f(const double *x) { double a = x[0];\n");
    for i in 0..n {
        let limit = if i == n / 2 { 0.0 } else { 100.0 };
        text += &format!(
            "a = cos(a) * x[{}] + 0.3; if (a > {limit}) goto fail;\n",
            i % 4
        );
    }
    text + "return a * a;\nfail: return -a * x[3]; }\n"
}

#[test]
fn few_branches_use_frame_tape() {
    let text = checked(&branches(20));
    assert!(text.contains("alloca") && !text.contains("@malloc("));
}

#[test]
fn many_branches_use_one_tape_block() {
    let text = checked(&branches(300));
    assert_eq!(
        text.matches("@malloc(").count(),
        1 + 1,
        "a call and a declaration"
    );
    assert!(!text.contains("alloca"));
}

#[test]
fn many_exits_use_one_tape_block() {
    let text = checked(&exits(300));
    assert!(text.contains("@malloc(") && !text.contains("alloca"));
}

#[test]
fn long_derivatives_are_split() {
    let wish = GradRequest {
        function: "f".into(),
        ..GradRequest::default()
    };
    for source in [straight(1000), branches(600), exits(1500)] {
        let reply = compile(&Request {
            inputs: vec![Input::new("test.bc", bitcode(&source, &["-O0"]))],
            task: grad(std::slice::from_ref(&wish)),
            level: Level::O0,
            report: true,
            emit: vec![OutputKind::Object, OutputKind::Header],
            options: Options {
                verify_each: true,
                dump_after: vec!["rewrite-call-sites".into(), "split-functions".into()],
                ..Options::default()
            },
        });
        compare(&reply);
        let dump = |pass: &str| reply.dumps.iter().find(|dump| dump.pass == pass);
        let [before, after] = ["rewrite-call-sites", "split-functions"]
            .map(|p| lengths(&dump(p).expect("a dump").text));
        let longest = |lengths: &[usize]| lengths.iter().max().copied().unwrap_or_default();
        assert!(longest(&before) > 8000, "{before:?}");
        assert!(longest(&after) < 6000, "{after:?}");
        // Values in the frame are stored and loaded; nothing else is added.
        let sum = |lengths: &[usize]| lengths.iter().sum::<usize>();
        assert!(sum(&after) < 3 * sum(&before), "{before:?} {after:?}");
    }
}
