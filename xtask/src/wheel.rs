//! `cargo xtask wheel`: the Python package as a wheel below `target/wheels`, with the command inside, and its first
//! gradient in a fresh virtual environment.
//!
//! The command contains LLVM. The wheel's tag is `manylinux` with the floor of glibc that the files have, whatever the
//! machine of the build was. A wheel of programs that load LLVM's library has the tag `linux`: an index refuses that.

use crate::dist::dynamic_section::{self, DynamicSection};
use crate::process::{self, Failure, Outcome};
use crate::{dist, python, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The builder of wheels.
const MATURIN: &str = "maturin>=1.7,<2";
/// The tool that states the tag.
const WHEEL: &str = "wheel>=0.40";
/// The most bytes of a wheel with LLVM inside.
const SIZE_BYTES_MAX: u64 = 30_000_000;
/// The folder of the command in the package.
const TREE: &str = "python/gradus/tree";
/// The parts of an installation that the package needs: links and files for build systems stay out.
const PARTS: &[&str] = &[
    "bin/gradus",
    "lib/gradus",
    "include/gradus",
    "share/doc/gradus",
];

/// The first gradient of a user.
pub const FIRST: &str = r#"
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
    let wheel = make(arguments)?;
    test(&wheel)
}

/// Builds the wheel with an honest tag. Returns its path.
///
/// # Errors
/// Fails if a build fails, or if the wheel is too large.
pub fn make(arguments: &[String]) -> Outcome<PathBuf> {
    let programs = dist::programs(arguments, "wheel")?;
    let tree = dist::tree(&programs)?;
    let place = workspace::root().join(TREE);
    workspace::remove(&place)?;
    for part in PARTS {
        copy(&tree.join(part), &place.join(part))?;
    }
    let wheel = build();
    workspace::remove(&place)?;
    let (wheel, section) = tagged(&wheel?)?;
    check_tag(&wheel, &section)?;
    let size = std::fs::metadata(&wheel).map_err(|e| Failure::new(e.to_string()))?;
    let megabytes = size.len() as f64 / 1e6;
    println!(
        "wrote {} ({megabytes:.1} MB): {}",
        wheel.display(),
        section.summary()
    );
    match size.len() > SIZE_BYTES_MAX {
        true => Err(Failure::new(format!(
            "the wheel has {megabytes:.1} MB, more than {} MB",
            SIZE_BYTES_MAX / 1_000_000
        ))),
        false => Ok(wheel),
    }
}

/// Gives a wheel the tag of its files' needs. Returns the wheel's new path, and the needs.
fn tagged(wheel: &Path) -> Outcome<(PathBuf, DynamicSection)> {
    let section = needs(wheel)?;
    let python = builder()?;
    let mut tag = Command::new(&python);
    tag.args(["-m", "wheel", "tags", "--remove", "--platform-tag"])
        .arg(section.wheel_tag())
        .arg(wheel);
    let name = process::capture(&mut tag)?;
    Ok((wheel.with_file_name(name.trim()), section))
}

/// Returns the needs of all programs and libraries in a wheel.
fn needs(wheel: &Path) -> Outcome<DynamicSection> {
    let folder = workspace::target().join("wheel-files");
    workspace::remove(&folder)?;
    let mut unpack = Command::new(python::interpreter());
    unpack.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder);
    process::show(&mut unpack)?;
    let section = DynamicSection::of_all(&dynamic_section::elf_files(&folder)?)?;
    workspace::remove(&folder)?;
    Ok(section)
}

/// Checks the tag in a wheel's name against the needs of its files.
///
/// # Errors
/// Fails if the tag is another one.
fn check_tag(wheel: &Path, section: &DynamicSection) -> Outcome<()> {
    let name = wheel.file_stem().unwrap_or_default().display().to_string();
    let honest = section.wheel_tag();
    match name.rsplit('-').next() {
        Some(tag) if tag == honest => Ok(()),
        _ => Err(Failure::new(format!(
            "{name} must have the tag {honest}: {}",
            section.summary()
        ))),
    }
}

/// Returns the interpreter with the builders of wheels.
fn builder() -> Outcome<PathBuf> {
    python::environment("python-wheels", &[MATURIN, WHEEL])
}

/// Copies a file, or a folder.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent)
        .map_err(|e| Failure::new(format!("cannot make {}: {e}", parent.display())))?;
    process::show(Command::new("cp").arg("-r").arg(from).arg(to))
}

/// Builds the wheel without a tag of its own. Returns its path.
fn build() -> Outcome<PathBuf> {
    let python = builder()?;
    let wheels = workspace::target().join("wheels");
    workspace::remove(&wheels)?;
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

/// Installs the wheel into a fresh virtual environment, and runs the first gradient there. Nothing of the cache must
/// stay after its removal.
fn test(wheel: &Path) -> Outcome<()> {
    let folder = workspace::target().join("python-wheel-test");
    let interpreter = python::create_environment(&folder, [wheel.as_os_str()])?;
    let cache = folder.join("cache");
    let python = |script: &str| {
        let mut command = Command::new(&interpreter);
        command
            .current_dir(&folder)
            .env_remove("GRADUS_COMMAND")
            .env("XDG_CACHE_HOME", &cache)
            .args(["-c", script]);
        process::show(&mut command)
    };
    python(FIRST)?;
    python("import gradus; gradus.clear_cache()")?;
    match cache.join("gradus").exists() {
        true => Err(Failure::new(format!("files stay in {}", cache.display()))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tag is checked on a real program: the one of these tests.
    #[test]
    fn a_tag_below_the_floor_is_refused() {
        let own = std::env::current_exe().expect("a path");
        let section = DynamicSection::of_all([&own]).expect("readable");
        let wheel = |tag: &str| PathBuf::from(format!("gradus-0.1.0-cp310-abi3-{tag}.whl"));
        check_tag(&wheel(&section.wheel_tag()), &section).expect("honest");
        for lie in ["manylinux_2_5_x86_64", "any", "manylinux_2_99_x86_64"] {
            let failure = check_tag(&wheel(lie), &section).expect_err(lie).to_string();
            assert!(failure.contains(&section.wheel_tag()), "{failure}");
        }
    }
}
