//! The course of `bench/`: builds a workload with a tool's gradient, runs its driver, reads what it says.

use crate::gradus;
use crate::process::{self, Failure, Finished, Outcome};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Who writes the gradient.
pub enum Tool {
    /// The adjoint written by hand, through clang.
    Hand,
    /// Gradus, through `gradus cc`; the binary.
    Gradus(PathBuf),
}

impl Tool {
    /// `hand` or `gradus`; `None` where Gradus has no command line yet.
    ///
    /// # Errors
    /// Where the name is neither, or Gradus does not build.
    pub fn named(name: &str) -> Outcome<Option<Tool>> {
        match name {
            "hand" => Ok(Some(Tool::Hand)),
            "gradus" => Ok(gradus::binary()?.map(Tool::Gradus)),
            _ => Err(Failure::new(format!("no tool `{name}`: hand or gradus"))),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Hand => "hand",
            Tool::Gradus(_) => "gradus",
        }
    }
}

/// A program of the course, built.
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

/// What a build is for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    /// Times, checks, results.
    Run,
    /// Times of the primal that are compared with another compiler's: functions start at cache lines, so that
    /// equal code runs equally.
    Primal,
    /// The peak of the heap.
    Memory,
}

/// How a program is built.
#[derive(Clone, Copy)]
pub struct Build<'a> {
    /// Part of the program's file name: builds that stand side by side are called differently.
    pub label: &'a str,
    /// Options of the compiler.
    pub flags: &'a [&'a str],
    /// The gradient comes as bitcode that clang made with these flags, and not as source.
    pub bitcode: bool,
    /// What it is for.
    pub purpose: Purpose,
}

/// Builds a workload at -O3 with a tool's gradient into `folder`.
///
/// # Errors
/// Where the compiler refuses; then with its reason.
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

/// Builds a workload with a tool's gradient into `folder`.
///
/// # Errors
/// Where the compiler refuses; then with its reason.
pub fn build_as(name: &str, tool: &Tool, how: Build, folder: &Path) -> Outcome<Program> {
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
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
        Err(Failure::new("compiler stopped at its time limit"))
    } else {
        Err(Failure::new(gradus::reason(&done.stderr)))
    }
}

/// The workload and its calls for a gradient as bitcode, optimised by clang.
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
    /// A run of it with these arguments, to be started.
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

    /// Times of the primal and the gradient on a problem of these sizes.
    ///
    /// # Errors
    /// Where the program fails.
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

    /// The time of the primal alone on a problem of these sizes, in microseconds.
    ///
    /// # Errors
    /// Where the program fails.
    pub fn primal_us(&self, sizes: &[&str]) -> Outcome<f64> {
        let done = self.run("--primal", sizes)?;
        number(&done.stdout, "primal")
            .ok_or_else(|| Failure::new(format!("timing: {}", done.ending())))
    }

    /// The worst relative error of the gradient against differences, and whether the driver accepts it.
    ///
    /// # Errors
    /// Where the program fails.
    pub fn check(&self, sizes: &[&str]) -> Outcome<Check> {
        let done = self.run("--check", sizes)?;
        let error = number(&done.stdout, "check");
        let error = error.ok_or_else(|| Failure::new(format!("check: {}", done.ending())))?;
        Ok(Check {
            error,
            right: done.succeeded(),
        })
    }

    /// The value and every derivative.
    ///
    /// # Errors
    /// Where the program fails.
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

    /// The peak of the heap during a gradient, in KB; of a build for that purpose.
    ///
    /// # Errors
    /// Where the program fails.
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
    /// Of the primal.
    pub primal_us: f64,
    /// Of the gradient.
    pub gradient_us: f64,
}

impl Times {
    /// Gradient over primal.
    pub fn ratio(&self) -> f64 {
        self.gradient_us / self.primal_us
    }
}

/// What a workload computes.
pub struct Results {
    /// The objective.
    pub value: f64,
    /// Its derivatives; of `ba`, the Jacobian.
    pub gradient: Vec<f64>,
}

/// The largest |a - b| relative to the larger, where entries far below the root mean square count against
/// a thousandth of it.
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

/// What the driver's check found.
pub struct Check {
    /// The worst relative error.
    pub error: f64,
    /// Whether it is within the course's limit.
    pub right: bool,
}

/// The number after `label`, which opens a line.
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
        // A weighted sum of squares of a linear map: homogeneous of degree two in the input.
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
