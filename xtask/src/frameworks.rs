//! `cargo xtask frameworks`: runs the Python package's tests with each framework, in the releases that the package
//! supports: the oldest and the newest of JAX and of PyTorch, TensorFlow, and Numba.
//!
//! Each release has a virtual environment of its own in the build folder. PyTorch's wheels of x86-64 carry their GPU
//! libraries: the environments take about 15 GB. The common tests (`cargo xtask test`) need none of them, apart from the
//! newest JAX.

use crate::process::{Failure, Outcome};
use crate::python;

/// A release of a framework, and packages that the release needs in addition.
struct Release {
    /// The package, which tests and pages of the manual have in their names.
    package: &'static str,
    version: &'static str,
    others: &'static [&'static str],
}

const RELEASES: &[Release] = &[
    Release {
        package: "torch",
        version: "2.15.0",
        others: &[],
    },
    Release {
        package: "torch",
        version: "2.8.0",
        others: &["setuptools>=70,<81"],
    },
    Release {
        package: "tensorflow",
        version: "2.21.0",
        others: &[],
    },
    Release {
        package: "numba",
        version: "0.68.1",
        others: &[],
    },
    Release {
        package: "jax",
        version: "0.10.2",
        others: &[],
    },
    Release {
        package: "jax",
        version: "0.4.35",
        others: &[],
    },
];

/// Packages of all environments.
const COMMON: &[&str] = &["numpy>=1.26,<3", "pytest>=8,<10", "scipy>=1.11,<2"];

/// Runs the tests with the frameworks of the given names, or with all.
///
/// # Errors
/// Fails if a build fails, if `pip` cannot install a package, or if a test fails; the failure names all releases that
/// failed.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let is_known = |name: &String| RELEASES.iter().any(|r| r.package == name);
    if let Some(unknown) = arguments.iter().find(|name| !is_known(name)) {
        let usage = "usage: cargo xtask frameworks [torch | tensorflow | numba | jax …]";
        return Err(Failure::new(format!("no framework `{unknown}`; {usage}")));
    }
    python::build()?;
    let is_chosen = |r: &&Release| arguments.is_empty() || arguments.iter().any(|n| n == r.package);
    let mut failed = Vec::new();
    for release in RELEASES.iter().filter(is_chosen) {
        let name = format!("{} {}", release.package, release.version);
        println!("== {name}");
        if let Err(failure) = test(release) {
            println!("== {name} FAILED: {failure}");
            failed.push(name);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("failed: {}", failed.join(", ")))),
    }
}

/// Runs the tests and the pages with the package's name in theirs.
fn test(release: &Release) -> Outcome<()> {
    let Release {
        package, version, ..
    } = release;
    let pinned = format!("{package}=={version}");
    let packages = [&[pinned.as_str()], COMMON, release.others].concat();
    let python = python::environment(&format!("frameworks/{package}-{version}"), &packages)?;
    // Tests skip a framework that is not installed, so that a broken installation must fail here.
    let import = format!("import {package}; print({package}.__version__)");
    python::show(&python, &["-c", &import])?;
    python::show(
        &python,
        &[&python::PYTEST[..], &["tests", "-k", package]].concat(),
    )
}
