//! Workloads of `bench/`: builds a workload with the gradient of a tool, runs its driver, and parses the
//! output.

use crate::gradus;
use crate::process::{self, Failure, Finished, Outcome};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Source of the gradient.
pub enum Tool {
    /// Hand-written adjoint, compiled by clang.
    Hand,
    /// Gradus, through `gradus cc`; holds the path of the binary.
    Gradus(PathBuf),
}

impl Tool {
    /// Returns the tool called `hand` or `gradus`; `None` if the clone has no command line.
    ///
    /// # Errors
    /// Fails if the name is unknown or if Gradus does not build.
    pub fn named(name: &str) -> Outcome<Option<Tool>> {
        match name {
            "hand" => Ok(Some(Tool::Hand)),
            "gradus" => Ok(gradus::binary()?.map(Tool::Gradus)),
            _ => Err(Failure::new(format!(
                "unknown tool `{name}`: expected hand or gradus"
            ))),
        }
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Hand => "hand",
            Tool::Gradus(_) => "gradus",
        }
    }
}

/// Built program of a workload.
pub struct Program {
    path: PathBuf,
}

const BUILD_LIMIT: Duration = Duration::from_secs(180);
const RUN_LIMIT: Duration = Duration::from_secs(600);
const NO_OPTIONS: &[&str] = &[];
const ALIGN: &[&str] = &["-falign-functions=64"];
const COUNT_MEMORY: &[&str] = &[
    "-DCOURSE_COUNT_MEMORY",
    "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free",
];

/// Purpose of a build.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    /// Times, checks and results.
    Run,
    /// Times of the primal, for comparison with another compiler. Functions are aligned to cache lines, hence
    /// equal code takes equal time.
    Primal,
    /// Peak of the heap.
    Memory,
}

/// Options of a build.
#[derive(Clone, Copy)]
pub struct Build<'a> {
    /// Part of the program's file name; differs between builds of one workload.
    pub label: &'a str,
    /// Options of the compiler.
    pub flags: &'a [&'a str],
    /// True if clang first compiles the gradient's source to bitcode with these flags.
    pub bitcode: bool,
    /// Purpose.
    pub purpose: Purpose,
}

/// Builds a workload at -O3 with the gradient of a tool into `folder`.
///
/// # Errors
/// Fails if the compiler refuses the workload; the failure holds the reason.
pub fn build(name: &str, tool: &Tool, purpose: Purpose, folder: &Path) -> Outcome<Program> {
    build_as(
        name,
        tool,
        Build {
            label: "",
            flags: &["-O3"],
            bitcode: false,
            purpose,
        },
        folder,
    )
}

/// Builds a workload with the gradient of a tool into `folder`.
///
/// # Errors
/// Fails if the compiler refuses the workload; the failure holds the reason.
pub fn build_as(name: &str, tool: &Tool, how: Build, folder: &Path) -> Outcome<Program> {
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    let (purpose, options) = match how.purpose {
        Purpose::Run => ("", NO_OPTIONS),
        Purpose::Primal => ("-primal", ALIGN),
        Purpose::Memory => ("-memory", COUNT_MEMORY),
    };
    let path = folder.join(format!("{name}-{}{}{purpose}", tool.name(), how.label));
    let mut compiler = match tool {
        Tool::Hand => {
            let mut clang = Command::new(workspace::clang());
            clang.args([format!("{name}.c"), format!("{name}_hand.c")]);
            clang
        }
        Tool::Gradus(binary) => {
            let mut gradus = Command::new(binary);
            gradus.arg("cc");
            if how.bitcode {
                gradus.arg(bitcode(name, how.flags, &path.with_extension("bc"))?);
            } else {
                gradus.args([
                    "-DUSE_ENZYME_API",
                    &format!("-DCOURSE={name}"),
                    "enzyme_api.c",
                ]);
            }
            gradus
        }
    };
    compiler.args(how.flags).args(options);
    compiler.args(["driver.c", "-lm", "-o"]).arg(&path);
    compiler.current_dir(workspace::root().join("bench"));
    let done = process::within(&mut compiler, BUILD_LIMIT)?;
    if done.succeeded() {
        Ok(Program { path })
    } else if done.status.is_none() {
        Err(Failure::new("compiler exceeded the time limit"))
    } else {
        Err(Failure::new(gradus::reason(&done.stderr)))
    }
}

/// Compiles the workload and its gradient requests to bitcode, optimised by clang.
fn bitcode(name: &str, flags: &[&str], path: &Path) -> Outcome<PathBuf> {
    let mut clang = Command::new(workspace::clang());
    clang.args(flags).args([
        "-emit-llvm",
        "-c",
        "-DUSE_ENZYME_API",
        &format!("-DCOURSE={name}"),
        "enzyme_api.c",
        "-o",
    ]);
    process::capture(clang.arg(path).current_dir(workspace::root().join("bench")))?;
    Ok(path.to_path_buf())
}

impl Program {
    /// Returns a command that runs the program with arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments);
        command
    }

    fn run(&self, option: &str, sizes: &[&str]) -> Outcome<Finished> {
        let arguments: Vec<&str> = Some(option)
            .into_iter()
            .filter(|o| !o.is_empty())
            .chain(sizes.iter().copied())
            .collect();
        process::within(&mut self.command(&arguments), RUN_LIMIT)
    }

    /// Returns the times of the primal and of the gradient on a problem of the given sizes.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn times(&self, sizes: &[&str]) -> Outcome<Times> {
        let done = self.run("--time", sizes)?;
        let (Some(primal_us), Some(gradient_us)) = (
            number(&done.stdout, "primal"),
            number(&done.stdout, "gradient"),
        ) else {
            return Err(Failure::new(format!("timing: {}", done.ending())));
        };
        Ok(Times {
            primal_us,
            gradient_us,
        })
    }

    /// Returns the time of the primal on a problem of the given sizes, in microseconds.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn primal_us(&self, sizes: &[&str]) -> Outcome<f64> {
        let done = self.run("--primal", sizes)?;
        number(&done.stdout, "primal")
            .ok_or_else(|| Failure::new(format!("timing: {}", done.ending())))
    }

    /// Returns the largest relative error of the gradient against finite differences, and the driver's verdict.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn check(&self, sizes: &[&str]) -> Outcome<Check> {
        let done = self.run("--check", sizes)?;
        let error = number(&done.stdout, "check");
        let error = error.ok_or_else(|| Failure::new(format!("check: {}", done.ending())))?;
        Ok(Check {
            error,
            right: done.succeeded(),
        })
    }

    /// Returns the value and every derivative.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn results(&self, sizes: &[&str]) -> Outcome<Results> {
        let done = self.run("--dump", sizes)?;
        let mut numbers = done
            .stdout
            .lines()
            .filter_map(|line| line.trim().parse::<f64>().ok());
        let value = numbers.next().filter(|_| done.succeeded());
        let value = value.ok_or_else(|| Failure::new(format!("results: {}", done.ending())))?;
        Ok(Results {
            value,
            gradient: numbers.collect(),
        })
    }

    /// Returns the peak of the heap during a gradient, in KB. The build must have [`Purpose::Memory`].
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn gradient_heap_kb(&self, sizes: &[&str]) -> Outcome<f64> {
        let done = self.run("", sizes)?;
        let text = done
            .stdout
            .rsplit("of the gradient ")
            .next()
            .unwrap_or_default();
        let word = text.split_whitespace().next().and_then(|w| w.parse().ok());
        word.ok_or_else(|| Failure::new(format!("heap: {}", done.ending())))
    }
}

/// Medians of the driver's runs.
#[derive(Clone, Copy)]
pub struct Times {
    /// Microseconds of the primal.
    pub primal_us: f64,
    /// Microseconds of the gradient.
    pub gradient_us: f64,
}

impl Times {
    /// Returns the time of the gradient divided by the time of the primal.
    pub fn ratio(&self) -> f64 {
        self.gradient_us / self.primal_us
    }
}

/// Results of a workload.
pub struct Results {
    /// Value of the objective.
    pub value: f64,
    /// Derivatives; the Jacobian for `ba`.
    pub gradient: Vec<f64>,
}

/// Returns the largest |a - b| relative to the larger of both. Entries far below the root mean square are
/// compared with a thousandth of the root mean square.
pub fn largest_error(ours: &[f64], reference: &[f64]) -> f64 {
    if ours.len() != reference.len() {
        return f64::INFINITY;
    }
    let squares: f64 = reference.iter().map(|r| r * r).sum();
    let floor = 1e-3 * (squares / reference.len().max(1) as f64).sqrt();
    let error = |(a, b): (&f64, &f64)| {
        let distance = (a - b).abs();
        let relative = distance / a.abs().max(b.abs()).max(floor);
        if distance == 0.0 {
            0.0
        } else if relative.is_nan() {
            f64::INFINITY // as wrong as can be
        } else {
            relative
        }
    };
    ours.iter().zip(reference).map(error).fold(0.0, f64::max)
}

/// Result of the driver's check.
pub struct Check {
    /// Largest relative error.
    pub error: f64,
    /// True if the error is within the limit of the benchmark suite.
    pub right: bool,
}

/// Returns the number after `label` at the beginning of a line.
fn number(text: &str, label: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(label)).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        workspace::target().join("course-test")
    }

    #[test]
    fn the_hand_adjoint_of_a_small_problem_is_right() {
        let program = build("gmm", &Tool::Hand, Purpose::Run, &folder()).unwrap();
        let check = program.check(&["2", "3", "10"]).unwrap();
        assert!(check.right && check.error < 1e-6, "{}", check.error);
    }

    #[test]
    fn heap_and_times_are_read() {
        let program = build("rk4", &Tool::Hand, Purpose::Memory, &folder()).unwrap();
        let heap = program.gradient_heap_kb(&["8", "10"]).unwrap();
        assert!(heap > 8.0 * 4.0 * 10.0 * 8.0 / 1e3, "{heap}");
        let times =
            "x: 1 inputs\n  primal       2.500 us\n  gradient    5.000 us\n  ratio  2.000\n";
        assert_eq!(number(times, "primal"), Some(2.5));
        assert_eq!(number(times, "check"), None);
    }

    #[test]
    fn value_and_derivatives_are_read() {
        let program = build("fft", &Tool::Hand, Purpose::Run, &folder()).unwrap();
        let results = program.results(&["16"]).unwrap();
        assert_eq!(results.gradient.len(), 32);
        // Weighted sum of squares of a linear map: homogeneous of degree two in the input.
        assert!(results.value > 0.0 && results.gradient.iter().all(|g| g.is_finite()));
    }

    #[test]
    fn a_refusal_is_told() {
        let refusing = Tool::Gradus(PathBuf::from("false"));
        assert!(build("gmm", &refusing, Purpose::Run, &folder()).is_err());
    }

    #[test]
    fn the_error_is_relative_and_sees_what_is_not_a_number() {
        assert_eq!(largest_error(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert!((largest_error(&[1.0, 2.002], &[1.0, 2.0]) - 1e-3).abs() < 1e-6);
        assert!(largest_error(&[1.0, 1e-9], &[1.0, 0.0]) < 1e-5);
        assert_eq!(largest_error(&[f64::NAN, 1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(largest_error(&[1.0], &[1.0, 2.0]), f64::INFINITY);
    }
}
