//! `cargo xtask bare`: installs each package in a bare Debian system, and measures the time to the first verified
//! gradient and the files that stay after the removal.
//!
//! The time is that of all commands which a user types, downloads included: compiler, package, first gradient. A
//! package passes within a minute, with a right gradient, and without a trace after the removal. The table also states
//! the processor time, which other programs of the machine do not lengthen.

mod root;

use crate::process::{Failure, Outcome};
use crate::table::Table;
use crate::{dist, wheel};
use root::Root;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The most seconds from the first command to the first verified gradient.
const SECONDS_MAX: f64 = 60.0;

/// The folder of the packages and of the user's program in the system.
const FOLDER: &str = "/srv";

/// The user's program.
const ENERGY: &str = "double energy(const double *x, int n) {\n\
    double s = 0;\n\
    for (int i = 0; i + 1 < n; i++) s += (x[i + 1] - x[i]) * (x[i + 1] - x[i]) * x[i];\n\
    return s;\n}\n";
/// A program that calls a derivative.
const MAIN: &str = "#include <gradus.h>\n#include <stdio.h>\n\
    double square(double x) { return x * x; }\n\
    int main(void) { printf(\"slope %g\\n\", gradus_vjp_double(square, gradus_out, 3.0)); }\n";
/// The first gradient of a C programmer: a check against differences, and a program that calls a derivative.
const FIRST_OF_C: &str = "cd /srv; gradus check energy.c -f energy --arg n=100 --arg 'x=rand(n)'\n\
    gradus-cc main.c -o main; ./main";
/// Answers of a right gradient.
const ANSWERS_OF_C: &[&str] = &["the derivative is right", "slope 6"];

const FIRST_OF_PYTHON: &str = "/opt/user/bin/python /srv/first.py";
const ANSWERS_OF_PYTHON: &[&str] = &["the first gradient is right"];

/// The installation of the compiler, for packages without dependencies.
const COMPILER: &str =
    "apt-get update -qq; apt-get install -y -qq --no-install-recommends clang-22";

/// The removal of an unpacked tarball (docs/install.md).
const REMOVE_TREE: &str = "cd $PREFIX && xargs -d '\\n' rm -f < share/gradus/files\n\
    find include/gradus lib/cmake lib/gradus lib/pkgconfig share/bash-completion share/doc share/fish share/gradus \
    share/man/man1 share/zsh -type d -empty -delete";

/// A package and the commands that a user types.
struct Way {
    package: &'static str,
    way: &'static str,
    /// The system before the first command.
    given: &'static str,
    compiler: &'static str,
    install: String,
    first: String,
    answers: &'static [&'static str],
    remove: String,
    limit: Limit,
}

/// Bound on the seconds of a way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// [`SECONDS_MAX`]: the commands of the manual.
    Minute,
    /// None: most of the time goes into packages that Gradus does not need.
    None,
}

/// Runs all ways of the packages that the arguments name, or of new packages.
///
/// # Errors
/// Fails if a package cannot be built, if a command fails, if a gradient is wrong, if a way takes more than a minute,
/// or if files stay.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let packages = match arguments {
        [] => {
            let packages = dist::packages()?;
            vec![packages.debian, packages.tarball, wheel::make(&[])?]
        }
        given => given.iter().map(PathBuf::from).collect(),
    };
    let mut all = Vec::new();
    for package in &packages {
        let ways = ways(package)?;
        all.extend(ways.into_iter().map(|way| (package, way)));
    }
    let mut table = Table::new(&[
        "package",
        "way",
        "compiler",
        "package",
        "gradient",
        "sum (s)",
        "processor (s)",
        "files left or lost",
    ]);
    let mut failures = Vec::new();
    for (package, way) in all {
        println!("bare: {}, {}", way.package, way.way);
        let cells = match measure(&way, package) {
            Ok(measured) => {
                failures.extend(measured.failure(&way));
                measured.cells()
            }
            Err(failure) => {
                failures.push(format!("{}, {}: {failure}", way.package, way.way));
                vec!["failed".into()]
            }
        };
        table.row([vec![way.package.into(), way.way.into()], cells].concat());
    }
    println!("\n{table}");
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(failures.join("\n"))),
    }
}

/// Returns the ways to install a package.
fn ways(package: &Path) -> Outcome<Vec<Way>> {
    let place = inside(package).display().to_string();
    let unpack = |prefix: &str| format!("tar -xf {place} -C {prefix} --strip-components=1");
    let extension = package.extension().unwrap_or_default().to_string_lossy();
    let ways = match &*extension {
        "deb" => vec![
            Way {
                package: "Debian package",
                way: "apt, clang-22 without recommended packages",
                given: "",
                compiler: COMPILER,
                install: format!("apt-get install -y -qq --no-install-recommends {place}"),
                first: FIRST_OF_C.into(),
                answers: ANSWERS_OF_C,
                remove: "apt-get purge -y -qq gradus".into(),
                limit: Limit::Minute,
            },
            Way {
                package: "Debian package",
                way: "apt, with all recommended packages",
                given: "",
                compiler: "",
                install: format!("apt-get update -qq; apt-get install -y -qq {place}"),
                first: FIRST_OF_C.into(),
                answers: ANSWERS_OF_C,
                // Packages of Debian leave files of their own.
                remove: String::new(),
                limit: Limit::None,
            },
        ],
        "gz" => vec![
            Way {
                package: "tarball",
                way: "/usr/local, as root",
                given: "",
                compiler: COMPILER,
                install: unpack("/usr/local"),
                first: FIRST_OF_C.into(),
                answers: ANSWERS_OF_C,
                remove: format!("PREFIX=/usr/local; {REMOVE_TREE}"),
                limit: Limit::Minute,
            },
            Way {
                package: "tarball",
                way: "~/.local, without root, clang 22 present",
                given: "apt-get update -qq; apt-get install -y -qq --no-install-recommends clang-22\n\
                        useradd -m user; chmod 777 /srv\n\
                        su user -c 'cd; mkdir -p .local/bin .local/include .local/lib .local/share/man'",
                compiler: "",
                install: as_user(&unpack("~/.local")),
                first: as_user(&format!("PATH=~/.local/bin:$PATH; {FIRST_OF_C}")),
                answers: ANSWERS_OF_C,
                remove: as_user(&format!("PREFIX=~/.local; {REMOVE_TREE}")),
                limit: Limit::Minute,
            },
        ],
        "whl" => vec![Way {
            package: "wheel",
            way: "pip in a bare environment",
            given: "apt-get update -qq; apt-get install -y -qq --no-install-recommends python3-venv\n\
                    python3 -m venv /opt/user; /opt/user/bin/pip --version; mkdir -p ~/.cache",
            compiler: COMPILER,
            install: format!("/opt/user/bin/pip install -q {place}"),
            first: FIRST_OF_PYTHON.into(),
            answers: ANSWERS_OF_PYTHON,
            remove: "/opt/user/bin/python -c 'import gradus; gradus.clear_cache()'\n\
                     /opt/user/bin/pip uninstall -q -y gradus numpy"
                .into(),
            limit: Limit::Minute,
        }],
        _ => {
            return Err(Failure::new(format!(
                "{} is no .deb, .tar.gz or .whl",
                package.display()
            )));
        }
    };
    Ok(ways)
}

/// Returns the script that runs a script as a user without rights.
fn as_user(script: &str) -> String {
    format!("su user -c 'set -e; {}'", script.replace('\'', "'\\''"))
}

/// Returns the place of a package in the system.
fn inside(package: &Path) -> PathBuf {
    Path::new(FOLDER).join(package.file_name().unwrap_or_default())
}

/// Seconds of the steps, and the files that stay.
struct Measured {
    compiler: f64,
    install: f64,
    first: f64,
    processor: f64,
    /// Files that stay after the removal (`+`), and files that the removal takes in excess (`-`); `None` if nothing
    /// was removed.
    changes: Option<Vec<String>>,
}

/// Takes one way in a new system.
fn measure(way: &Way, package: &Path) -> Outcome<Measured> {
    let root = Root::unpack()?;
    root.put(package, &inside(package))?;
    root.write("/srv/energy.c", ENERGY)?;
    root.write("/srv/main.c", MAIN)?;
    root.write("/srv/first.py", wheel::FIRST)?;
    root.run(way.given)?;
    let compiler = timed(&root, way.compiler)?;
    let before = root.files()?;
    let install = timed(&root, &way.install)?;
    let first = timed(&root, &way.first)?;
    let mut answers = way.answers.iter();
    if let Some(answer) = answers.find(|answer| !first.said.contains(**answer)) {
        let said = first.said;
        return Err(Failure::new(format!(
            "no `{answer}` in the output:\n{said}"
        )));
    }
    let steps = [&compiler, &install, &first];
    let mut measured = Measured {
        compiler: compiler.seconds,
        install: install.seconds,
        first: first.seconds,
        processor: steps.iter().map(|step| step.processor).sum(),
        changes: None,
    };
    if !way.remove.is_empty() {
        root.run(&way.remove)?;
        let after = root.files()?;
        let left = after.difference(&before).map(|path| format!("+ {path}"));
        let lost = before.difference(&after).map(|path| format!("- {path}"));
        // The user's own files stay.
        let own = format!("+ {FOLDER}/");
        let all = left.chain(lost).filter(|change| !change.starts_with(&own));
        measured.changes = Some(all.collect());
    }
    Ok(measured)
}

/// Seconds and output of a script.
#[derive(Default)]
struct Step {
    seconds: f64,
    processor: f64,
    said: String,
}

/// Runs a script, unless the script is empty.
fn timed(root: &Root, script: &str) -> Outcome<Step> {
    if script.is_empty() {
        return Ok(Step::default());
    }
    let start = Instant::now();
    let (said, processor) = root.run(script)?;
    Ok(Step {
        seconds: start.elapsed().as_secs_f64(),
        processor,
        said,
    })
}

impl Measured {
    fn sum(&self) -> f64 {
        self.compiler + self.install + self.first
    }

    fn cells(&self) -> Vec<String> {
        let steps = [self.compiler, self.install, self.first];
        let sums = [self.sum(), self.processor];
        let all = steps.iter().chain(&sums);
        let mut cells: Vec<String> = all.map(|s| format!("{s:.1}")).collect();
        let changes = self.changes.as_ref();
        cells.push(changes.map_or("not removed".into(), |all| all.len().to_string()));
        cells
    }

    /// Explains why the way does not pass.
    fn failure(&self, way: &Way) -> Option<String> {
        let mut faults = Vec::new();
        if way.limit == Limit::Minute && self.sum() > SECONDS_MAX {
            faults.push(format!("{:.1} s, more than {SECONDS_MAX} s", self.sum()));
        }
        let changes = self.changes.as_deref().unwrap_or_default();
        if !changes.is_empty() {
            let some: Vec<&str> = changes.iter().map(String::as_str).take(20).collect();
            faults.push(format!(
                "the removal leaves or takes files:\n  {}",
                some.join("\n  ")
            ));
        }
        let faults = Some(faults.join("; ")).filter(|text| !text.is_empty());
        faults.map(|faults| format!("{}, {}: {faults}", way.package, way.way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_the_commands() {
        let page = include_str!("../../../docs/install.md");
        let mut lines = REMOVE_TREE.lines();
        assert!(
            lines.all(|line| page.contains(&format!("{line}\n"))),
            "{REMOVE_TREE}"
        );
        assert!(page.contains("apt install --no-install-recommends ./gradus_"));
        assert!(page.contains("apt purge gradus\n"));
    }

    #[test]
    fn other_files_are_no_packages() {
        assert!(ways(Path::new("a.zip")).is_err());
    }

    #[test]
    fn time_and_files_that_stay_are_faults() {
        let way = &ways(Path::new("dist/a.deb")).expect("a package")[0];
        assert!(way.install.ends_with(" /srv/a.deb"), "{}", way.install);
        let measured = |install, left: &[&str]| Measured {
            compiler: 20.0,
            install,
            first: 1.0,
            processor: 5.0,
            changes: Some(left.iter().map(|&path| path.to_owned()).collect()),
        };
        assert_eq!(measured(30.0, &[]).failure(way), None);
        let slow = measured(50.0, &[]).failure(way).expect("a fault");
        assert!(slow.contains("71.0 s"), "{slow}");
        let left = measured(1.0, &["/etc/x"]).failure(way).expect("a fault");
        assert!(left.contains("/etc/x"), "{left}");
    }
}
