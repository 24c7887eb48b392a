//! LLVM as archives: the programs of the tarball and the wheel contain LLVM.
//!
//! `llvm-sys` links the shared library of the folder `LLVM_SYS_221_PREFIX`, or the archives if the folder has no shared
//! library. The folder of this file is of the second kind. Its `llvm-config` names the archives without the targets
//! that Gradus does not need, and its headers register the other targets. Archives of zlib, zstd and the C++ library lie
//! next to LLVM's, before the shared libraries on the linker's path. The unwinder stays a shared library, which glibc
//! needs in any case: gcc's archive of the unwinder would lift the floor of glibc.
//!
//! # Invariants
//! A file is written only if its contents change: cargo builds all again when the folder is newer.

use super::dynamic_section::DynamicSection;
use crate::process::{self, Failure, Outcome};
use crate::setup::{self, Need};
use crate::workspace;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the folder of LLVM.
const PREFIX: &str = "LLVM_SYS_221_PREFIX";
/// The folder of LLVM without the variable.
const DEFAULT_PREFIX: &str = "/usr/lib/llvm-22";
/// The profile of the programs.
const PROFILE: &str = "packaged";
/// The targets of LLVM in the programs: hosts, and device code of CUDA programs.
const TARGETS: &[&str] = &["AArch64", "NVPTX", "X86"];
/// Archives that Gradus does not use and that need further libraries (curl, libxml2, libpfm).
const LEFT_OUT: &[&str] = &["Debuginfod", "Exegesis", "WindowsManifest"];
/// Libraries of the system behind LLVM's archives.
const SYSTEM: &str = "-lrt -ldl -lm -lz -lzstd -lgradus_arc4random";
/// A function of glibc that would lift the floor.
const ARC4RANDOM: &str = include_str!("arc4random.c");

/// An archive that the programs contain.
pub struct Archive {
    /// The file that gcc finds.
    file: &'static str,
    /// Name of the project.
    pub project: &'static str,
    /// SPDX expression of the licence.
    pub licence: &'static str,
}

/// The archives besides LLVM's.
const ARCHIVES: &[Archive] = &[
    Archive {
        file: "libz.a",
        project: "zlib",
        licence: "Zlib",
    },
    Archive {
        file: "libzstd.a",
        project: "zstd",
        licence: "BSD-3-Clause OR GPL-2.0-only",
    },
    Archive {
        file: "libstdc++.a",
        project: "libstdc++",
        licence: "GPL-3.0-or-later WITH GCC-exception-3.1",
    },
];

/// LLVM's own row in lists of contents.
const LLVM: Archive = Archive {
    file: "libLLVMCore.a",
    project: "LLVM",
    licence: "Apache-2.0 WITH LLVM-exception",
};

/// Packages of the build.
const NEEDS: &[Need] = &[
    Need {
        package: "llvm-22-dev",
        purpose: "LLVM's archives",
        present: || llvm().join("lib/libLLVMCore.a").is_file(),
    },
    Need {
        package: "zlib1g-dev",
        purpose: "zlib's archive",
        present: || find("libz.a").is_ok(),
    },
    Need {
        package: "libzstd-dev",
        purpose: "zstd's archive",
        present: || find("libzstd.a").is_ok(),
    },
];

/// Builds the programs with LLVM inside. Returns their folder.
///
/// # Errors
/// Fails if an archive is missing, if the build fails, or if the programs need a library besides glibc.
pub fn build() -> Outcome<PathBuf> {
    setup::install(NEEDS)?;
    let prefix = prefix()?;
    let target = workspace::target().join("static");
    let mut build = workspace::cargo();
    build
        .args(["build", "--profile", PROFILE, "--locked"])
        .args(["--package", "gradus-cli", "--target-dir"])
        .arg(&target)
        .env(PREFIX, prefix);
    process::show(&mut build)?;
    let programs = target.join(PROFILE);
    let files = ["gradus", "gradus-compiler"].map(|name| programs.join(name));
    let section = DynamicSection::of_all(&files)?;
    match section.foreign()[..] {
        [] => Ok(programs),
        ref foreign => Err(Failure::new(format!(
            "the programs must not need {}",
            foreign.join(", ")
        ))),
    }
}

/// Returns the archives in programs of [`build`], each with the path of its file.
///
/// # Errors
/// Fails if an archive is missing.
pub fn contents() -> Outcome<Vec<(&'static Archive, PathBuf)>> {
    let mut all = vec![(&LLVM, llvm().join("lib").join(LLVM.file))];
    for archive in ARCHIVES {
        all.push((archive, find(archive.file)?));
    }
    Ok(all)
}

/// Returns LLVM's folder of this machine.
fn llvm() -> PathBuf {
    std::env::var_os(PREFIX).map_or_else(|| DEFAULT_PREFIX.into(), PathBuf::from)
}

/// Returns the path of an archive that gcc finds.
fn find(file: &str) -> Outcome<PathBuf> {
    let mut gcc = Command::new("cc");
    let path = process::capture(gcc.arg(format!("-print-file-name={file}")))?;
    // gcc prints the name alone if there is no such file.
    match Path::new(path.trim()) {
        path if path.is_absolute() => path
            .canonicalize()
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display()))),
        _ => Err(Failure::new(format!("there is no {file}"))),
    }
}

/// Makes the folder of LLVM as archives. Returns its path.
fn prefix() -> Outcome<PathBuf> {
    let llvm = llvm();
    let prefix = workspace::target().join("static-llvm");
    let config = llvm.join("bin/llvm-config");
    for tool in entries(&llvm.join("bin"))? {
        if tool != "llvm-config" {
            link(
                &llvm.join("bin").join(&tool),
                &prefix.join("bin").join(&tool),
            )?;
        }
    }
    link(&llvm.join("include/llvm-c"), &prefix.join("include/llvm-c"))?;
    let headers = Path::new("include/llvm");
    for entry in entries(&llvm.join(headers))? {
        if entry != "Config" {
            let place = headers.join(&entry);
            link(&llvm.join(&place), &prefix.join(&place))?;
        }
    }
    let lists = headers.join("Config");
    for entry in entries(&llvm.join(&lists))? {
        let place = lists.join(&entry);
        if !entry.ends_with(".def") {
            link(&llvm.join(&place), &prefix.join(&place))?;
            continue;
        }
        let file = llvm.join(&place);
        let text = std::fs::read_to_string(&file)
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())))?;
        write(&prefix.join(&place), &own_targets(&text))?;
    }
    let built = process::capture(Command::new(&config).arg("--targets-built"))?;
    let mut ask = Command::new(&config);
    let archives = process::capture(ask.args(["--link-static", "--libnames", "all"]))?;
    // A part that Debian packs elsewhere (Polly) has no archive here.
    let archives: Vec<&str> = own_archives(&archives, &built)
        .filter(|name| llvm.join("lib").join(name).is_file())
        .collect();
    for name in &archives {
        link(&llvm.join("lib").join(name), &prefix.join("lib").join(name))?;
    }
    for archive in ARCHIVES {
        link(&find(archive.file)?, &prefix.join("lib").join(archive.file))?;
    }
    compile_arc4random(&prefix)?;
    let script = prefix.join("bin/llvm-config");
    write(&script, &llvm_config(&config, &prefix, &archives))?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| Failure::new(format!("cannot change {}: {e}", script.display())))?;
    Ok(prefix)
}

/// Returns a list of targets (`LLVM_TARGET(X86)`, …) without the targets that Gradus does not need.
fn own_targets(list: &str) -> String {
    let keeps = |line: &&str| {
        let Some((name, rest)) = line.split_once('(') else {
            return true;
        };
        let target = rest.trim_end_matches(')');
        !name.starts_with("LLVM_") || TARGETS.contains(&target)
    };
    let lines = list.lines().filter(keeps);
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the archives without those of other targets and of parts that are left out.
fn own_archives<'a>(archives: &'a str, built: &'a str) -> impl Iterator<Item = &'a str> {
    let belongs = |name: &str, part: &str| {
        let rest = name.strip_prefix("libLLVM");
        rest.is_some_and(|rest| rest.starts_with(part))
    };
    let others = built.split_whitespace();
    let others: Vec<&str> = others.filter(|target| !TARGETS.contains(target)).collect();
    archives.split_whitespace().filter(move |name| {
        let mut parts = others.iter().chain(LEFT_OUT);
        !parts.any(|part| belongs(name, part))
    })
}

/// Returns the text of the program `llvm-config` for the folder.
fn llvm_config(real: &Path, prefix: &Path, archives: &[&str]) -> String {
    let (real, prefix) = (real.display(), prefix.display());
    let archives = archives.join(" ");
    format!(
        "#!/bin/sh\n\
         # LLVM without a shared library, for the build of the packages.\n\
         case \"$*\" in\n\
         *--link-shared*) echo 'no shared library' >&2; exit 1 ;;\n\
         --libdir) echo '{prefix}/lib' ;;\n\
         --cflags) '{real}' --cflags | sed 's#-I[^ ]*#-I{prefix}/include#' ;;\n\
         '--libnames --link-static') echo '{archives}' ;;\n\
         '--system-libs --link-static') echo '{SYSTEM}' ;;\n\
         *) exec '{real}' \"$@\" ;;\n\
         esac\n"
    )
}

/// Makes the archive of `arc4random`.
fn compile_arc4random(prefix: &Path) -> Outcome<()> {
    let source = prefix.join("src/arc4random.c");
    let archive = prefix.join("lib/libgradus_arc4random.a");
    let is_new = write(&source, ARC4RANDOM)?;
    if !is_new && archive.is_file() {
        return Ok(());
    }
    let object = source.with_extension("o");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-fPIC", "-c"]).arg(&source);
    process::show(compile.arg("-o").arg(&object))?;
    process::show(Command::new("ar").arg("rcs").arg(&archive).arg(&object))
}

/// Returns the names in a folder, sorted.
fn entries(folder: &Path) -> Outcome<Vec<String>> {
    let cannot = |e| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        names.push(entry.map_err(cannot)?.file_name().display().to_string());
    }
    names.sort();
    Ok(names)
}

/// Makes a symbolic link, unless it is there.
fn link(to: &Path, place: &Path) -> Outcome<()> {
    if std::fs::read_link(place).is_ok_and(|old| old == to) {
        return Ok(());
    }
    prepare(place)?;
    std::os::unix::fs::symlink(to, place)
        .map_err(|e| Failure::new(format!("cannot make {}: {e}", place.display())))
}

/// Writes a file, unless it has the contents. Returns whether the file is new.
fn write(place: &Path, text: &str) -> Outcome<bool> {
    if std::fs::read_to_string(place).is_ok_and(|old| old == text) {
        return Ok(false);
    }
    prepare(place)?;
    std::fs::write(place, text)
        .map(|()| true)
        .map_err(|e| Failure::new(format!("cannot write {}: {e}", place.display())))
}

/// Makes the folder of a file, and removes an older file.
fn prepare(place: &Path) -> Outcome<()> {
    let folder = place.parent().unwrap_or(place);
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("cannot make {}: {e}", folder.display())))?;
    match std::fs::remove_file(place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", place.display()).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_comments_and_own_targets() {
        let list =
            "/* text (c) */\n#ifndef LLVM_TARGET\n#endif\nLLVM_TARGET(ARM)\nLLVM_TARGET(X86)\n";
        assert_eq!(
            own_targets(list),
            "/* text (c) */\n#ifndef LLVM_TARGET\n#endif\nLLVM_TARGET(X86)\n"
        );
    }

    #[test]
    fn archives_of_other_targets_are_left_out() {
        let archives = "libLLVMVECodeGen.a libLLVMVectorize.a libLLVMARMInfo.a libLLVMAArch64Info.a \
                        libLLVMWindowsManifest.a libLLVMNVPTXDesc.a libLLVMCore.a";
        let kept: Vec<&str> = own_archives(archives, "ARM AArch64 NVPTX VE X86").collect();
        assert_eq!(
            kept,
            [
                "libLLVMVectorize.a",
                "libLLVMAArch64Info.a",
                "libLLVMNVPTXDesc.a",
                "libLLVMCore.a"
            ]
        );
    }
}
