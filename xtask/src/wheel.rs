//! `cargo xtask wheel`: the Python package as a wheel below `target/wheels`, with the command inside, and its first
//! gradient in a fresh virtual environment.
//!
//! The command needs LLVM's library of the system: the wheel is tagged for Linux in general, not for `manylinux`.

use crate::process::{self, Failure, Outcome};
use crate::{dist, python, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The builder of wheels.
const MATURIN: &str = "maturin>=1.7,<2";
/// The folder of the command in the package.
const TREE: &str = "python/gradus/tree";
/// The parts of an installation that the package needs: links and files for build systems stay out.
const PARTS: &[&str] = &["bin/gradus", "lib/gradus", "include/gradus"];

/// The first gradient of a user.
const FIRST: &str = r#"
import gradus, numpy
f = gradus.from_source("double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i] * x[i]; return s; }").f
assert f.grad(numpy.array([1.0, 2.0])).tolist() == [3.0, 12.0]
print("the first gradient is right:", gradus.__file__)
"#;

/// Builds the wheel from a release build, or from the programs of a folder, and tests the wheel.
///
/// # Errors
/// Fails if a build or an installation fails, or if the first gradient is wrong.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let programs = dist::programs(arguments, "wheel")?;
    let tree = dist::tree(&programs)?;
    let place = workspace::root().join(TREE);
    dist::remove(&place)?;
    for part in PARTS {
        copy(&tree.join(part), &place.join(part))?;
    }
    let wheel = build();
    dist::remove(&place)?;
    let wheel = wheel?;
    println!("wrote {}", wheel.display());
    test(&wheel)
}

/// Copies a file, or a folder.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent)
        .map_err(|e| Failure::new(format!("cannot make {}: {e}", parent.display())))?;
    process::show(Command::new("cp").arg("-r").arg(from).arg(to))
}

/// Builds the wheel. Returns its path.
fn build() -> Outcome<PathBuf> {
    let python = python::environment("python-wheels", &[MATURIN])?;
    let wheels = workspace::target().join("wheels");
    dist::remove(&wheels)?;
    let mut maturin = Command::new(&python);
    maturin
        .current_dir(workspace::root().join("python"))
        .args([
            "-m",
            "maturin",
            "build",
            "--profile",
            python::PROFILE,
            "--quiet",
            "--compatibility",
            "linux",
            "--out",
        ])
        .arg(&wheels);
    process::show(&mut maturin)?;
    let found = std::fs::read_dir(&wheels).map_err(|e| e.to_string())?;
    let mut found = found.filter_map(|entry| Some(entry.ok()?.path()));
    let wheel = found.find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| Failure::new("maturin wrote no wheel"))
}

/// Installs the wheel into a fresh virtual environment, and runs the first gradient there.
fn test(wheel: &Path) -> Outcome<()> {
    let folder = workspace::target().join("python-wheel-test");
    let interpreter = python::create_environment(&folder, [wheel.as_os_str()])?;
    let mut first = Command::new(&interpreter);
    first
        .current_dir(&folder)
        .env_remove("GRADUS_COMMAND")
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .args(["-c", FIRST]);
    process::show(&mut first)
}
