//! `cargo xtask dist`: a release as an install tree, a tarball and a Debian package below `target/dist`.
//!
//! `gradus install` makes the tree; the command here builds, strips, and packs. LLVM's library is not part of a
//! package: the Debian package depends on `libllvm22`.
//!
//! # Invariants
//! Equal sources give equal archives: names are sorted, and times are those of the commit.

use crate::process::{self, Failure, Outcome};
use crate::workspace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Debian packages of the libraries that the programs load.
const DEPENDS: &str = "libc6, libgcc-s1, libstdc++6, libllvm22";
/// The Debian packages that the command runs.
const RECOMMENDS: &str = "clang-22, flang-22, lld-22, libomp-22-dev";

/// Builds the release, or packs the programs of a folder.
///
/// # Errors
/// Fails if the build fails, or if a tool for the packages is missing.
pub fn run(arguments: &[String]) -> Outcome<()> {
    let programs = programs(arguments, "dist")?;
    let release = Release::new()?;
    let tree = release.tree(&programs.join("gradus"))?;
    println!("wrote {}", tree.display());
    println!("wrote {}", release.tarball(&tree)?.display());
    match process::on_path("dpkg-deb") {
        true => println!("wrote {}", release.debian_package(&tree)?.display()),
        false => println!("no Debian package: dpkg-deb is missing"),
    }
    Ok(())
}

/// Returns the folder of the programs: a release build, or the folder that the arguments of `command` name.
///
/// # Errors
/// Fails if the build fails, or for other arguments.
pub fn programs(arguments: &[String], command: &str) -> Outcome<PathBuf> {
    match arguments {
        [] => {
            let mut build = workspace::cargo();
            build.args(["build", "--release", "--locked", "--package", "gradus-cli"]);
            process::show(&mut build)?;
            Ok(workspace::target().join("release"))
        }
        [option, folder] if option == "--from" => Ok(PathBuf::from(folder)),
        _ => Err(Failure::new(format!(
            "usage: cargo xtask {command} [--from FOLDER]"
        ))),
    }
}

/// Makes the install tree with the programs of a folder. Returns the tree.
///
/// # Errors
/// Fails if the installation fails.
pub fn tree(programs: &Path) -> Outcome<PathBuf> {
    Release::new()?.tree(&programs.join("gradus"))
}

/// A release: its names, and the folder of its files.
struct Release {
    folder: PathBuf,
    version: String,
    host: String,
    /// Time of the commit, in seconds since 1970.
    time: String,
}

impl Release {
    fn new() -> Outcome<Release> {
        let folder = workspace::target().join("dist");
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let about = process::capture(Command::new("rustc").arg("-vV"))?;
        let host = about.lines().find_map(|line| line.strip_prefix("host: "));
        let mut time = Command::new("git");
        time.args(["log", "-1", "--format=%ct"])
            .current_dir(workspace::root());
        Ok(Release {
            folder,
            version: env!("CARGO_PKG_VERSION").into(),
            host: host
                .ok_or_else(|| Failure::new("rustc names no host"))?
                .into(),
            // Sources without git have no commit.
            time: process::capture(&mut time).map_or("0".into(), |text| text.trim().into()),
        })
    }

    /// Makes the install tree with the program `gradus`.
    fn tree(&self, gradus: &Path) -> Outcome<PathBuf> {
        let tree = self
            .folder
            .join(format!("gradus-{}-{}", self.version, self.host));
        remove(&tree)?;
        process::capture(Command::new(gradus).arg("install").arg(&tree))?;
        for program in ["bin/gradus", "lib/gradus/gradus-compiler"] {
            process::show(Command::new("strip").arg(tree.join(program)))?;
        }
        add_dependencies(&tree)?;
        Ok(tree)
    }

    /// Packs the tree. Returns the archive.
    fn tarball(&self, tree: &Path) -> Outcome<PathBuf> {
        let name = tree.file_name().unwrap_or_default();
        let archive = tree.with_file_name(format!("{}.tar.xz", name.display()));
        let mut tar = Command::new("tar");
        tar.arg("-C")
            .arg(&self.folder)
            .args(["--sort=name", "--owner=0", "--group=0"]);
        tar.args(["--numeric-owner", &format!("--mtime=@{}", self.time)]);
        process::show(tar.arg("-cJf").arg(&archive).arg(name))?;
        Ok(archive)
    }

    /// Packs the tree below `/usr`. Returns the package.
    fn debian_package(&self, tree: &Path) -> Outcome<PathBuf> {
        let architecture = process::capture(Command::new("dpkg").arg("--print-architecture"))?;
        let architecture = architecture.trim();
        let root = self.folder.join("debian");
        remove(&root)?;
        let control = root.join("DEBIAN");
        std::fs::create_dir_all(&control)
            .map_err(|e| format!("cannot make {}: {e}", control.display()))?;
        process::show(Command::new("cp").arg("-a").arg(tree).arg(root.join("usr")))?;
        let text = self.control(architecture);
        std::fs::write(control.join("control"), text)
            .map_err(|e| format!("cannot write the control file: {e}"))?;
        let package = self
            .folder
            .join(format!("gradus_{}_{architecture}.deb", self.version));
        let mut pack = Command::new("dpkg-deb");
        pack.args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&root)
            .arg(&package);
        process::capture(pack.env("SOURCE_DATE_EPOCH", &self.time))?;
        remove(&root)?;
        Ok(package)
    }

    /// Returns the control file of the Debian package.
    fn control(&self, architecture: &str) -> String {
        let version = &self.version;
        format!(
            "Package: gradus\nVersion: {version}\nArchitecture: {architecture}\n\
             Maintainer: Gradus contributors\nSection: devel\nPriority: optional\n\
             Depends: {DEPENDS}\nRecommends: {RECOMMENDS}\n\
             Description: automatic differentiation for C, C++, Fortran, Rust and CUDA\n \
             Gradus differentiates existing programs at the level of LLVM IR, optimises\n \
             OpenMP and Cilk code, and compiles CUDA programs for CPUs.\n"
        )
    }
}

/// Adds the list of all crates in the programs, with versions and licences, to a tree.
fn add_dependencies(tree: &Path) -> Outcome<()> {
    const LIST: &str = "share/doc/gradus/dependencies";
    let mut ask = workspace::cargo();
    ask.args(["tree", "--package", "gradus-cli", "--edges", "normal"]);
    ask.args(["--prefix", "none", "--no-dedupe", "--format", "{p} {l}"]);
    let crates = process::capture(&mut ask)?;
    // Crates of the workspace have a path behind the version.
    let lines: BTreeSet<&str> = crates
        .lines()
        .filter(|line| !line.contains(" (/"))
        .collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let manifest = tree.join("share/gradus/files");
    let cannot = |e| Failure::new(format!("cannot write below {}: {e}", tree.display()));
    std::fs::write(tree.join(LIST), text).map_err(cannot)?;
    let files = std::fs::read_to_string(&manifest).map_err(cannot)?;
    std::fs::write(&manifest, files + LIST + "\n").map_err(cannot)
}

/// Removes a folder that may be absent.
///
/// # Errors
/// Fails if the folder stays.
pub fn remove(folder: &Path) -> Outcome<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", folder.display()).into())
        }
        _ => Ok(()),
    }
}
