//! `cargo xtask dist`: a release below `target/dist`, as an install tree, a tarball and a Debian package.
//!
//! `gradus install` makes the tree; the command here builds, strips, and packs. The programs of the tarball contain
//! LLVM. The Debian package depends on `libllvm22`, which `clang-22` needs in any case.
//!
//! # Invariants
//! Equal sources give equal archives: names are sorted, and times are those of the commit.

mod contents;
pub mod dynamic_section;
mod static_llvm;

use crate::process::{self, Failure, Outcome};
use crate::workspace;
use contents::Llvm;
use dynamic_section::DynamicSection;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Debian packages of the libraries that the programs may load.
const LIBRARIES: &[(&str, &str)] = &[
    ("libLLVM.so.22.1", "libllvm22"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libstdc++.so.6", "libstdc++6"),
];
/// The Debian packages that the command runs for C, C++ and CUDA.
const RECOMMENDS: &str = "clang-22";
/// The Debian packages for Fortran, OpenMP programs, and links of device code.
const SUGGESTS: &str = "flang-22, libomp-22-dev, lld-22";
/// The crates in the files of an installation.
const CRATES: &[&str] = &["gradus-cli", "gradus-rt"];

/// Packages of a release.
pub struct Packages {
    /// The archive with LLVM inside.
    pub tarball: PathBuf,
    /// The Debian package.
    pub debian: PathBuf,
}

/// Builds the release, or packs the programs of a folder.
///
/// # Errors
/// Fails if the build fails, or if a tool for the packages is missing.
pub fn run(arguments: &[String]) -> Outcome<()> {
    match arguments {
        [] => drop(packages()?),
        [option, folder] if option == "--from" => drop(pack(folder.as_ref(), folder.as_ref())?),
        _ => return Err(Failure::new("usage: cargo xtask dist [--from FOLDER]")),
    }
    Ok(())
}

/// Builds both kinds of programs, and packs.
///
/// # Errors
/// Fails if a build fails, or if a tool for the packages is missing.
pub fn packages() -> Outcome<Packages> {
    let with_llvm = static_llvm::build()?;
    let mut build = workspace::cargo();
    build.args(["build", "--release", "--locked", "--package", "gradus-cli"]);
    process::show(&mut build)?;
    pack(&with_llvm, &workspace::target().join("release"))
}

/// Packs the programs of two folders: of the tarball, and of the Debian package.
fn pack(tarball: &Path, debian: &Path) -> Outcome<Packages> {
    let release = Release::new()?;
    let (tree, section) = release.tree(&debian.join("gradus"), CRATES)?;
    let debian = release.debian_package(&tree, &section)?;
    println!("wrote {}: {}", debian.display(), section.summary());
    let (tree, section) = release.tree(&tarball.join("gradus"), CRATES)?;
    let tarball = release.tarball(&tree)?;
    println!("wrote {}: {}", tarball.display(), section.summary());
    Ok(Packages { tarball, debian })
}

/// Returns the folder of programs with LLVM inside: a build, or the folder that the arguments of `command` name.
///
/// # Errors
/// Fails if the build fails, or for other arguments.
pub fn programs(arguments: &[String], command: &str) -> Outcome<PathBuf> {
    match arguments {
        [] => static_llvm::build(),
        [option, folder] if option == "--from" => Ok(PathBuf::from(folder)),
        _ => Err(Failure::new(format!(
            "usage: cargo xtask {command} [--from FOLDER]"
        ))),
    }
}

/// Makes the install tree of a wheel with the programs of a folder. Returns the tree.
///
/// # Errors
/// Fails if the installation fails.
pub fn tree(programs: &Path) -> Outcome<PathBuf> {
    let crates = [CRATES, &["gradus-python"]].concat();
    let (tree, _) = Release::new()?.tree(&programs.join("gradus"), &crates)?;
    Ok(tree)
}

/// Returns rustc's name of this machine.
///
/// # Errors
/// Fails if rustc does not answer.
pub fn host() -> Outcome<String> {
    let about = process::capture(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::new("rustc names no host"))
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
        let mut time = Command::new("git");
        time.args(["log", "-1", "--format=%ct"])
            .current_dir(workspace::root());
        Ok(Release {
            folder,
            version: env!("CARGO_PKG_VERSION").into(),
            host: host()?,
            // Sources without git have no commit.
            time: process::capture(&mut time).map_or("0".into(), |text| text.trim().into()),
        })
    }

    /// Makes the install tree with the program `gradus`; `crates` are in the package. Returns the tree and the needs
    /// of its programs.
    fn tree(&self, gradus: &Path, crates: &[&str]) -> Outcome<(PathBuf, DynamicSection)> {
        let tree = self
            .folder
            .join(format!("gradus-{}-{}", self.version, self.host));
        workspace::remove(&tree)?;
        process::capture(Command::new(gradus).arg("install").arg(&tree))?;
        let programs = dynamic_section::elf_files(&tree)?;
        for program in &programs {
            process::show(Command::new("strip").arg(program))?;
        }
        let section = DynamicSection::of_all(&programs)?;
        let llvm = match section.needed.contains("libLLVM.so.22.1") {
            true => Llvm::Outside,
            false => Llvm::Inside,
        };
        contents::write(&tree, crates, llvm)?;
        list(&tree, &[contents::BILL, contents::LICENCES])?;
        Ok((tree, section))
    }

    /// Packs the tree. Returns the archive.
    fn tarball(&self, tree: &Path) -> Outcome<PathBuf> {
        let name = tree.file_name().unwrap_or_default();
        let archive = tree.with_file_name(format!("{}.tar.gz", name.display()));
        let mut tar = Command::new("tar");
        tar.arg("-C")
            .arg(&self.folder)
            .args(["--sort=name", "--owner=0", "--group=0"]);
        tar.args(["--numeric-owner", &format!("--mtime=@{}", self.time)]);
        // A bare system has gzip only.
        process::show(tar.arg("-czf").arg(&archive).arg(name))?;
        Ok(archive)
    }

    /// Packs the tree below `/usr`. Returns the package.
    fn debian_package(&self, tree: &Path, section: &DynamicSection) -> Outcome<PathBuf> {
        let architecture = process::capture(Command::new("dpkg").arg("--print-architecture"))?;
        let architecture = architecture.trim();
        let root = self.folder.join("debian");
        workspace::remove(&root)?;
        let control = root.join("DEBIAN");
        std::fs::create_dir_all(&control)
            .map_err(|e| format!("cannot make {}: {e}", control.display()))?;
        process::show(Command::new("cp").arg("-a").arg(tree).arg(root.join("usr")))?;
        let text = self.control(architecture, &depends(section)?);
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
        workspace::remove(&root)?;
        Ok(package)
    }

    /// Returns the control file of the Debian package.
    fn control(&self, architecture: &str, depends: &str) -> String {
        let version = &self.version;
        format!(
            "Package: gradus\nVersion: {version}\nArchitecture: {architecture}\n\
             Maintainer: Gradus contributors\nSection: devel\nPriority: optional\n\
             Depends: {depends}\nRecommends: {RECOMMENDS}\nSuggests: {SUGGESTS}\n\
             Description: automatic differentiation for C, C++, Fortran, Rust and CUDA\n \
             Gradus differentiates existing programs at the level of LLVM IR, optimises\n \
             OpenMP and Cilk code, and compiles CUDA programs for CPUs.\n"
        )
    }
}

/// Returns the Debian packages of the needed libraries.
fn depends(section: &DynamicSection) -> Outcome<String> {
    let mut packages: Vec<String> = Vec::new();
    packages.extend(section.floor.map(|floor| format!("libc6 (>= {floor})")));
    for library in section.foreign().into_iter().chain(["libgcc_s.so.1"]) {
        match LIBRARIES.iter().find(|(name, _)| *name == library) {
            Some((_, package)) if section.needed.contains(library) => {
                packages.push((*package).into())
            }
            Some(_) => {}
            None => return Err(Failure::new(format!("no package is known for {library}"))),
        }
    }
    Ok(packages.join(", "))
}

/// Adds files to the list of installed files of a tree.
fn list(tree: &Path, files: &[&str]) -> Outcome<()> {
    let place = tree.join("share/gradus/files");
    let cannot = |e| Failure::new(format!("cannot write {}: {e}", place.display()));
    let mut lines = std::fs::read_to_string(&place).map_err(cannot)?;
    for file in files {
        lines += &format!("{file}\n");
    }
    std::fs::write(&place, lines).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(needed: &[&str]) -> DynamicSection {
        DynamicSection {
            needed: needed.iter().map(|&name| name.to_owned()).collect(),
            ..DynamicSection::default()
        }
    }

    #[test]
    fn the_package_depends_on_needed_libraries_only() {
        let needed = ["libc.so.6", "libgcc_s.so.1", "libLLVM.so.22.1"];
        assert_eq!(
            depends(&section(&needed)).expect("known"),
            "libllvm22, libgcc-s1"
        );
        assert_eq!(depends(&section(&["libc.so.6"])).expect("known"), "");
        assert!(depends(&section(&["libunknown.so.1"])).is_err());
    }
}
