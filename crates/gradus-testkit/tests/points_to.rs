//! The points-to analysis against the interpreter: each observed address lies in a target of its pointer.

use gradus_ir::parse;
use gradus_testkit::{Call, Style, check_points_to, program, wide_program, wide_unit};

/// Returns a call of a generated program, with a point of the derivative checks.
fn call(function: &str) -> Call {
    let text = format!("@{function}(8, [0.5, -0.25, 0.75, 1.5, -1.25, 0.125, 0.3, 0.9], 0.4)");
    Call::parse(&text).expect("the call is well-formed")
}

/// Returns the count of an environment variable, for long runs.
fn count(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Counts checked accesses, and collects failures.
#[derive(Default)]
struct Findings {
    accesses: usize,
    wrong: Vec<String>,
}

impl Findings {
    fn add(&mut self, name: &str, found: Result<usize, String>) {
        match found {
            Ok(count) => self.accesses += count,
            Err(why) => self.wrong.push(format!("{name}:\n{why}")),
        }
    }
    fn require(self, least: usize) {
        eprintln!("{} accesses and indirect calls", self.accesses);
        assert!(
            self.wrong.is_empty(),
            "{} programs:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
        assert!(self.accesses >= least, "only {} accesses", self.accesses);
    }
}

#[test]
fn small_programs_access_analysed_targets() {
    let mut findings = Findings::default();
    for seed in 0..count("GRADUS_POINTS_TO", 100) {
        let unit = parse(&program(seed, Style::default()), "program").expect("it parses");
        findings.add(
            &format!("program {seed}"),
            check_points_to(&unit, &[call("f")]),
        );
    }
    findings.require(1000);
}

#[test]
fn wide_programs_access_analysed_targets() {
    let mut findings = Findings::default();
    for seed in 0..count("GRADUS_POINTS_TO", 100) {
        let made = wide_program(seed);
        let unit = wide_unit(std::slice::from_ref(&made)).expect("it parses");
        let found = check_points_to(&unit, &[call(&made.function)]);
        findings.add(&format!("wide program {seed}"), found);
    }
    findings.require(1000);
}
