//! `cargo xtask python`: builds the Python package in place, and runs its tests in a virtual environment of the build
//! folder.
//!
//! The tests call the development build of the command: the compiler's own assertions are part of the test.

use crate::process::{self, Failure, Outcome};
use crate::workspace;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of the tests; `pip` installs them once.
const PACKAGES: &[&str] = &[
    "jax>=0.4.34,<1",
    "numpy>=1.26,<3",
    "pytest>=8,<10",
    "scipy>=1.11,<2",
];

/// The profile of the extension module.
pub const PROFILE: &str = "python";

/// The extension module of the package, as the interpreter finds it.
const EXTENSION: &str = "python/gradus/_native.abi3.so";

/// Runs the tests of the package, or the benchmark of calls; other arguments are pytest's.
///
/// # Errors
/// Fails if a build fails, if `pip` cannot install a package, or if a test fails.
pub fn run(arguments: &[String]) -> Outcome<()> {
    build()?;
    let python = environment("python-tests", PACKAGES)?;
    match arguments {
        [] => show(&python, &[&PYTEST[..], &["tests"]].concat()),
        [only] if only == "--bench" => show(&python, &["bench/call_overhead.py"]),
        given => {
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            show(&python, &[&PYTEST[..], &given].concat())
        }
    }
}

/// Builds the command and the extension module.
///
/// # Errors
/// Fails if a build fails.
pub fn build() -> Outcome<()> {
    process::show(workspace::cargo().args(["build", "--quiet", "--package", "gradus-cli"]))?;
    build_extension()
}

/// The arguments that start pytest.
pub const PYTEST: [&str; 5] = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];

/// Runs an interpreter in the package's folder, with the package, the command of the development build, and a cache in
/// the build folder.
///
/// # Errors
/// Fails if the interpreter fails.
pub fn show(python: &Path, arguments: &[&str]) -> Outcome<()> {
    let folder = workspace::root().join("python");
    let mut command = Command::new(python);
    command
        .current_dir(&folder)
        .env("PYTHONPATH", &folder)
        .env("GRADUS_COMMAND", workspace::target().join("debug/gradus"))
        .env("XDG_CACHE_HOME", workspace::target().join("python-cache"))
        .args(arguments);
    process::show(&mut command)
}

/// Builds the extension module, and copies it into the package.
fn build_extension() -> Outcome<()> {
    let mut build = workspace::cargo();
    build.args([
        "build",
        "--quiet",
        "--package",
        "gradus-python",
        "--profile",
        PROFILE,
    ]);
    process::show(&mut build)?;
    let built = workspace::target()
        .join(PROFILE)
        .join("libgradus_native.so");
    let place = workspace::root().join(EXTENSION);
    // A new file: interpreters that run keep the old one.
    let new = place.with_extension("new");
    let copied = std::fs::copy(&built, &new).and_then(|_| std::fs::rename(&new, &place));
    copied.map_err(|e| Failure::new(format!("cannot write {}: {e}", place.display())))
}

/// Returns the interpreter of the virtual environment `name` of the build folder, with these packages.
///
/// # Errors
/// Fails if `pip` cannot install a package.
pub fn environment(name: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let folder = workspace::target().join(name);
    let python = folder.join("bin/python");
    let list = folder.join("packages.txt");
    let wanted = packages.join("\n");
    if python.is_file() && std::fs::read_to_string(&list).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    println!("python: installing {}", packages.join(", "));
    create_environment(&folder, packages.iter().map(OsStr::new))?;
    std::fs::write(&list, wanted)
        .map_err(|e| Failure::new(format!("cannot write {}: {e}", list.display())))?;
    Ok(python)
}

/// Creates a virtual environment with these packages or wheels, and returns the interpreter.
///
/// # Errors
/// Fails if `pip` cannot install a package.
pub fn create_environment<'a>(
    folder: &Path,
    packages: impl IntoIterator<Item = &'a OsStr>,
) -> Outcome<PathBuf> {
    let mut venv = Command::new(interpreter());
    process::show(venv.args(["-m", "venv", "--clear"]).arg(folder))?;
    let python = folder.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.arg("--disable-pip-version-check");
    process::show(pip.args(packages))?;
    Ok(python)
}

/// Returns the system's interpreter: Debian's has `venv` after `setup`.
pub fn interpreter() -> &'static str {
    match Path::new("/usr/bin/python3").is_file() {
        true => "/usr/bin/python3",
        false => "python3",
    }
}
