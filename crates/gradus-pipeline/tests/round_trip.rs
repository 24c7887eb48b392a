//! The round trip of programs through the IR: equal code, for the user's own optimiser.

use crate::support::{bitcode, findings, link_and_run};
use gradus_pipeline::{Input, Level, Options, OutputKind, Request, Task, compile};

const PROGRAM: &str = "
extern int printf(const char *, ...);
static int half(int a) { return a > 7 ? a / 2 : a; }
int f(const int *x) {
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += half(x[i]);
    return sum;
}
int main(void) { const int x[4] = {1, 20, 7, 9}; printf(\"%d\", f(x)); return 0; }
";

/// Returns the number of occurrences of each word in a text.
fn counts(text: &str, words: &[&str]) -> Vec<usize> {
    words
        .iter()
        .map(|word| text.matches(word).count())
        .collect()
}

#[test]
fn calls_and_loops_are_left_to_the_optimiser() {
    let reply = compile(&Request {
        inputs: vec![Input::new(
            "test.bc",
            bitcode(PROGRAM, &["-O2", "-Xclang", "-disable-llvm-passes"]),
        )],
        task: Task::RestructureAll,
        level: Level::O2,
        report: false,
        emit: vec![OutputKind::Object],
        options: Options {
            verify_each: true,
            dump_after: vec!["parse".into(), "export".into()],
            ..Options::default()
        },
    });
    let Some(object) = reply.output(OutputKind::Object) else {
        panic!("refused\n{}", findings(&reply));
    };
    assert_eq!(link_and_run(object, &[], &[]).as_deref(), Ok("22"));
    let text = |pass: &str| {
        let dump = reply.dumps.iter().find(|dump| dump.pass == pass);
        &dump.expect("a dump").text
    };
    // Neither inlined nor unrolled, and no additional branch.
    let words = ["@half(", "sdiv", "br i1"];
    assert_eq!(counts(text("parse"), &words), [2, 1, 2]);
    let after = counts(text("export"), &words);
    assert_eq!(after[..2], [2, 1]);
    assert!(after[2] <= 2, "{}", text("export"));
}
