//! Programs of very many branches and exits: their tapes lie in one block, and their gradients are right.

mod support;
use gradus_pipeline::{GradRequest, Level, OutputKind};
use support::{CHECK, bitcode, findings, grad, link_and_run, run};

const MAIN: &str = "
extern double f(const double *);
int main(void) {
    double x[4] = {0.3, 0.7, 0.4, 0.9}, g[4] = {0};
    f_vjp(x, g, 1.0);
    for (int i = 0; i < 4; i++) { double at = x[i]; NEAR(g[i], SLOPE(t, at, (x[i] = t, f(x)))); x[i] = at; }
}";

/// The derivative of `f` as LLVM's text, after its gradient was compared with differences.
fn checked(source: &str) -> String {
    let wish = GradRequest {
        function: "f".into(),
        ..GradRequest::default()
    };
    let emit = [OutputKind::Object, OutputKind::Header, OutputKind::LlvmText];
    let reply = run(bitcode(source, &["-O0"]), grad(&[wish]), Level::O0, &emit);
    let Some(object) = reply.output(OutputKind::Object) else {
        panic!("refused\n{}", findings(&reply));
    };
    let header = reply.text(OutputKind::Header).expect("a header");
    let main = format!("{CHECK}\n#include \"made.h\"\n{MAIN}");
    let files = [("made.h", header), ("main.c", main.as_str())];
    if let Err(why) = link_and_run(object, &files, &[]) {
        panic!("{why}");
    }
    let text = reply.text(OutputKind::LlvmText).expect("the text");
    let start = text.find("define internal void @__gradus1_vjp");
    text[start.expect("a derivative")..].to_string()
}

/// n two-armed branches whose arms keep values.
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

/// n exits to one label; the middle one is taken.
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
fn few_branches_keep_their_values_in_the_frame() {
    let text = checked(&branches(20));
    assert!(text.contains("alloca") && !text.contains("@malloc("));
}

#[test]
fn very_many_branches_keep_their_values_in_one_block() {
    let text = checked(&branches(300));
    assert_eq!(
        text.matches("@malloc(").count(),
        1 + 1,
        "a call and a declaration"
    );
    assert!(!text.contains("alloca"));
}

#[test]
fn very_many_exits_keep_their_values_in_one_block() {
    let text = checked(&exits(300));
    assert!(text.contains("@malloc(") && !text.contains("alloca"));
}
