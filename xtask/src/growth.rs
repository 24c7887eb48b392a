//! `cargo xtask growth`: compile time. Programs of n, 2n, 4n statements, calls and branches must compile in
//! time that grows with them; twenty thousand early exits and a chain of five thousand calls must compile
//! at all; and a gradient must not take much longer than clang takes for one written by hand.
//!
//! Times are processor times, the smaller of two runs; clang's own growth on the primal stands beside
//! (its -O3 is quadratic in the length of a block once that has thousands of statements); the gradient of every program is run and checked by a difference.

use crate::gradus;
use crate::process::{self, Failure, Outcome};
use crate::table::Table;
use crate::workspace;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A family of programs: a name, the smallest size, and the text of f(x) for a size.
struct Family {
    name: &'static str,
    size: usize,
    doublings: u32,
    text: fn(usize) -> String,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "straight line",
        size: 500,
        doublings: 2,
        text: straight,
    },
    Family {
        name: "calls",
        size: 250,
        doublings: 2,
        text: calls,
    },
    Family {
        name: "branches",
        size: 250,
        doublings: 2,
        text: branches,
    },
    Family {
        name: "early exits",
        size: 20_000,
        doublings: 0,
        text: exits,
    },
    Family {
        name: "deep calls",
        size: 5000,
        doublings: 0,
        text: calls,
    },
];

/// The most that twice the program may cost.
const GROWTH: f64 = 2.3;
const LIMIT: Duration = Duration::from_secs(600);

/// Compiles all families, or those named, and prints the table.
///
/// # Errors
/// Where a program does not compile, its gradient is wrong, or time grows too fast.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let Some(gradus) = gradus::binary()? else {
        return Err(Failure::new("gradus is not there yet"));
    };
    let folder = workspace::target().join("growth");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let mut table = Table::new(&[
        "program",
        "n",
        "gradus (s)",
        "per doubling",
        "clang -O3, primal alone (s)",
        "",
    ]);
    let mut failed = Vec::new();
    for family in FAMILIES
        .iter()
        .filter(|f| arguments.is_empty() || arguments.iter().any(|a| a == f.name))
    {
        let mut before = None;
        for k in 0..=family.doublings {
            let n = family.size << k;
            eprintln!("{} {n} …", family.name);
            let source = folder.join(format!("{}-{n}.c", family.name.replace(' ', "-")));
            std::fs::write(&source, program(&(family.text)(n)))
                .map_err(|e| Failure::new(e.to_string()))?;
            let clang = compile_time(Command::new(workspace::clang()).arg("-DPRIMAL"), &source)?;
            let outcome = compile_time(Command::new(&gradus).arg("cc"), &source)
                .and_then(|t| check(&source).map(|()| t));
            let (time, growth, verdict) = match outcome {
                Ok(time) => {
                    let growth = before.map(|b: f64| time / b);
                    before = Some(time);
                    let fast = growth.is_some_and(|g| g > GROWTH);
                    (
                        format!("{time:.2}"),
                        growth,
                        if fast {
                            "grows too fast".into()
                        } else {
                            "ok".to_owned()
                        },
                    )
                }
                Err(failure) => (String::new(), None, failure.to_string()),
            };
            if verdict != "ok" {
                failed.push(format!("{} {n}", family.name));
            }
            let growth = growth.map_or(String::new(), |g| format!("{g:.2}"));
            table.row(vec![
                family.name.into(),
                n.to_string(),
                time,
                growth,
                format!("{clang:.2}"),
                verdict,
            ]);
        }
    }
    println!("{table}");
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("did not hold: {}", failed.join(", "))))
    }
}

/// Processor seconds of the faster of two compilations at -O3, to a program beside the source.
fn compile_time(compiler: &mut Command, source: &Path) -> Outcome<f64> {
    compiler
        .args(["-w", "-O3", "-fbracket-depth=100000"])
        .arg(source)
        .args(["-lm", "-o"])
        .arg(source.with_extension(""));
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        let (done, seconds) = process::processor_time(compiler, LIMIT)?;
        if !done.succeeded() {
            return Err(Failure::new(format!(
                "{}: {}",
                done.ending(),
                gradus::reason(&done.stderr)
            )));
        }
        best = best.min(seconds);
        // What takes this long is not measured twice.
        if best > 20.0 {
            break;
        }
    }
    Ok(best)
}

fn check(source: &Path) -> Outcome<()> {
    let done = process::within(&mut Command::new(source.with_extension("")), LIMIT)?;
    if done.succeeded() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "the gradient: {} {}",
            done.ending(),
            done.stdout.trim()
        )))
    }
}

/// A program around `double f(const double *x)` that checks its gradient along one direction.
fn program(function: &str) -> String {
    format!(
        "#include <math.h>\n#include <stdio.h>\n\n{function}\n
#ifdef PRIMAL
int main(void)
{{
    double x[8] = {{0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6, 0.5}};
    printf(\"%.17g\\n\", f(x));
}}
#else
extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);

int main(void)
{{
    double x[8] = {{0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6, 0.5}}, x_adj[8] = {{0}}, up[8], down[8], along = 0;
    const double direction[8] = {{1, -0.5, 0.3, 0.8, -0.2, 0.6, -0.9, 0.4}}, h = 1e-5;
    __enzyme_autodiff((void *)f, enzyme_dup, x, x_adj);
    for (int i = 0; i < 8; i++) {{
        along += x_adj[i] * direction[i];
        up[i] = x[i] + h * direction[i];
        down[i] = x[i] - h * direction[i];
    }}
    const double difference = (f(up) - f(down)) / (2 * h);
    printf(\"gradient %.12g difference %.12g\\n\", along, difference);
    return fabs(along - difference) <= 1e-5 * fmax(1e-3, fabs(difference)) ? 0 : 1;
}}
#endif
"
    )
}

/// n statements, one after the other.
fn straight(n: usize) -> String {
    let mut text = String::from("double f(const double *x)\n{\n    double a = x[0], b = x[1];\n");
    for i in 0..n {
        text += &match i % 4 {
            0 => format!("    a = 0.6 * a * b + x[{}];\n", i % 8),
            1 => format!("    b = sin(b) + 0.3 * a * x[{}];\n", (i * 3) % 8),
            2 => format!("    a = a / (1.5 + b * b) + 0.1 * x[{}];\n", (i * 5) % 8),
            _ => "    b = 0.5 * (a + b);\n".to_owned(),
        };
    }
    text + "    return a + b;\n}\n"
}

/// A chain of n functions, each calling the one before.
fn calls(n: usize) -> String {
    let mut text = String::from(
        "__attribute__((noinline)) static double f0(const double *x) { return x[0] * x[1]; }\n",
    );
    for i in 1..=n {
        text += &format!(
            "__attribute__((noinline)) static double f{i}(const double *x) {{ return 0.9 * f{}(x) * x[{}] + sin(x[{}]); }}\n",
            i - 1,
            i % 8,
            (i * 3) % 8
        );
    }
    text + &format!("double f(const double *x) {{ return f{n}(x); }}\n")
}

/// n two-armed branches, one after the other.
fn branches(n: usize) -> String {
    let mut text = String::from("double f(const double *x)\n{\n    double a = x[0], b = x[1];\n");
    for i in 0..n {
        text += &format!(
            "    if (a > b * x[{}])\n        a = 0.4 * a * x[{}] + 0.1;\n    else\n        b = 0.7 * b + cos(a) * x[{}];\n",
            i % 8,
            (i * 3) % 8,
            (i * 5) % 8
        );
    }
    text + "    return a + b;\n}\n"
}

/// n exits to one label, one after the other, as C programs handle errors: n nested regions.
fn exits(n: usize) -> String {
    let mut text = String::from("double f(const double *x)\n{\n    double a = x[0];\n");
    for i in 0..n {
        text += &format!(
            "    a = 0.5 * a + 0.1 * x[{}];\n    if (a > 100.0 + {i})\n        goto fail;\n",
            i % 8
        );
    }
    text + "    return a * a;\nfail:\n    return -a;\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_a_program_that_clang_takes() {
        let folder = workspace::target().join("growth-test");
        std::fs::create_dir_all(&folder).unwrap();
        for family in FAMILIES {
            let source = folder.join(format!("{}.c", family.name.replace(' ', "-")));
            std::fs::write(&source, program(&(family.text)(20))).unwrap();
            compile_time(Command::new(workspace::clang()).arg("-DPRIMAL"), &source).unwrap();
            check(&source).unwrap();
        }
    }
}
