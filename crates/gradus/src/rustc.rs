//! Rust programs: compiles a source by rustc, or a crate by Cargo, to the bitcode of a static library.
//!
//! A static library has all dependences of its functions, Rust's standard library included. The library is
//! linked along, for symbols undefined in the bitcode.

use crate::files::{self, Scratch};
use crate::job_execution::{refused_error, run_captured};
use crate::settings::Settings;
use crate::source::{self, CompilerOptions, Source};
use gradus_ir::{Code, Diagnostic};
use std::path::{Path, PathBuf};

/// Returns true for a Rust source, or a crate's manifest.
pub(crate) fn is_rust(file: &Path) -> bool {
    is_manifest(file) || file.extension().is_some_and(|e| e == "rs")
}

fn is_manifest(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == "Cargo.toml")
}

/// Returns the name of a static library's crate.
pub(crate) fn crate_name(library: &Path) -> Option<&str> {
    library.file_stem()?.to_str()?.strip_prefix("lib")
}

/// Opens a program like [`source::open`], with flags of rustc or `cargo rustc`. An optimisation level in
/// clang's spelling (`-O3`) applies to both compilers, except that a crate's level is in its manifest.
///
/// # Errors
/// See [`source::open`].
pub(crate) fn open(
    settings: &Settings,
    file: &Path,
    wanted: &CompilerOptions,
    scratch: &Scratch,
    derived: &Path,
) -> Result<Source, Diagnostic> {
    let (levels, flags): (Vec<_>, Vec<_>) = wanted.flags.iter().cloned().partition(is_level);
    let (bitcode, library) = match is_manifest(file) {
        true => by_cargo(settings, file, &flags, scratch)?,
        false => by_rustc(settings, file, &levels, flags, scratch)?,
    };
    let back = CompilerOptions {
        flags: &levels,
        ..*wanted
    };
    let source = source::open(settings, &bitcode, &back, scratch, derived)?;
    Ok(Source {
        library: Some(library),
        ..source
    })
}

/// Returns true for `-O0` to `-O3`, `-Os`, `-Oz`, but not rustc's own `-O`.
fn is_level(flag: &String) -> bool {
    flag.len() == 3 && flag.starts_with("-O")
}

fn by_rustc(
    settings: &Settings,
    file: &Path,
    levels: &[String],
    flags: Vec<String>,
    scratch: &Scratch,
) -> Result<(PathBuf, PathBuf), Diagnostic> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let bitcode = scratch.file(&format!("{name}.bc"));
    let library = scratch.file(&format!("lib{name}.a"));
    let level = levels.last().map_or("2", |level| &level[2..]);
    let is_given = |word: &str| flags.iter().any(|flag| flag.contains(word));
    let mut args = vec![
        format!("--crate-name={name}"),
        "--crate-type=staticlib".into(),
        format!("-Copt-level={level}"),
        format!("--emit=llvm-bc={}", bitcode.display()),
        format!("--emit=link={}", library.display()),
    ];
    if !is_given("--out-dir") {
        // Without a folder rustc writes its intermediate objects to the current folder, under names that depend on the
        // crate only: two runs at once would remove each other's files.
        args.push(format!("--out-dir={}", scratch.folder().display()));
    }
    if !is_given("--edition") {
        args.push("--edition=2024".into());
    }
    if !is_given("debuginfo") && !flags.iter().any(|flag| flag == "-g") {
        args.push("-g".into());
    }
    args.extend(flags);
    args.push(source::absolute(file).display().to_string());
    run(settings, "rustc", args)?;
    Ok((bitcode, library))
}

/// Compiles the crate into a single module, in the release profile: all callees are visible.
///
/// Runs of one crate share Cargo's target folder, for incremental builds. A lock covers the build and the copies of its
/// outputs, because another run with other flags (features) writes to the same files.
fn by_cargo(
    settings: &Settings,
    manifest: &Path,
    flags: &[String],
    scratch: &Scratch,
) -> Result<(PathBuf, PathBuf), Diagnostic> {
    let manifest = source::absolute(manifest);
    let folder = manifest.with_file_name("target").join("gradus");
    let mut parts = flags.splitn(2, |flag| flag == "--");
    let (of_cargo, of_rustc) = (parts.next(), parts.next());
    let mut args: Vec<String> = ["rustc", "--release", "--lib", "--crate-type=staticlib"]
        .map(String::from)
        .to_vec();
    args.extend([
        format!("--manifest-path={}", manifest.display()),
        format!("--target-dir={}", folder.display()),
        "--message-format=json-render-diagnostics".into(),
        "--config=profile.release.lto='fat'".into(),
        "--config=profile.release.debug=2".into(),
    ]);
    args.extend_from_slice(of_cargo.unwrap_or_default());
    args.extend(["--", "--emit=llvm-bc"].map(String::from));
    args.extend_from_slice(of_rustc.unwrap_or_default());
    let _lock = files::lock(&folder.join("gradus.lock"))?;
    let said = run(settings, "cargo", args)?;
    let failed = |what: &str| {
        let message = format!("Cargo built no {what} from {}", manifest.display());
        Diagnostic::error(Code::ToolFailed, message)
    };
    let library = static_library(&said).ok_or_else(|| failed("library"))?;
    let bitcode = bitcode_of(&library)?.ok_or_else(|| failed("bitcode"))?;
    Ok((scratch.copy(&bitcode)?, scratch.copy(&library)?))
}

/// Returns the bitcode of a static library that Cargo built now or earlier.
///
/// rustc writes both into the folder `deps`, with the hash of the compilation (features, profile, compiler) in the name.
/// Cargo links the library of the requested compilation to its place without a hash, also if nothing is compiled. A name
/// without a hash for the bitcode would belong to the last compilation, whatever its features.
fn bitcode_of(library: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    let deps = library.with_file_name("deps");
    let stem = library.file_stem().unwrap_or_default().to_string_lossy();
    let wanted = files::read(library)?;
    for entry in files::list(&deps)? {
        let name = entry.file_stem().unwrap_or_default().to_string_lossy();
        let is_kind = entry.extension().is_some_and(|e| e == "a");
        let is_named = name
            .strip_prefix(&*stem)
            .is_some_and(|rest| rest.starts_with('-'));
        if is_kind && is_named && files::read(&entry)? == wanted {
            let bitcode = name.strip_prefix("lib").unwrap_or(&name);
            let bitcode = deps.join(format!("{bitcode}.bc"));
            return Ok(bitcode.is_file().then_some(bitcode));
        }
    }
    Ok(None)
}

/// Returns the static library in Cargo's messages: the last is the crate's own.
fn static_library(said: &[u8]) -> Option<PathBuf> {
    let said = String::from_utf8_lossy(said);
    let messages = said.lines().rev();
    let messages = messages.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut files = messages.flat_map(|message| {
        let files = message["filenames"].as_array().cloned();
        files.unwrap_or_default()
    });
    files.find_map(|file| {
        let file = PathBuf::from(file.as_str()?);
        file.extension().is_some_and(|e| e == "a").then_some(file)
    })
}

/// Runs a program of the Rust toolchain. Returns the output.
fn run(settings: &Settings, name: &str, args: Vec<String>) -> Result<Vec<u8>, Diagnostic> {
    let program = settings.find(name).ok_or_else(|| {
        let message = format!("no {name} was found");
        Diagnostic::error(Code::ToolFailed, message).help("install Rust: https://rustup.rs")
    })?;
    let output = run_captured(&crate::clang_jobs::Job { program, args })?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(refused_error(&output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_the_last_one_made() {
        let said = br#"{"reason":"compiler-artifact","filenames":["/t/release/libdeps.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/release/libbranches.a","/t/release/x.d"]}
{"reason":"build-finished","success":true}"#;
        let library = static_library(said).expect("there is one");
        assert_eq!(library, Path::new("/t/release/libbranches.a"));
        assert_eq!(crate_name(&library), Some("branches"));
        assert_eq!(static_library(b"{}\nnothing"), None);
    }

    #[test]
    fn sources_and_manifests_are_rust() {
        let is = |name: &str| is_rust(Path::new(name));
        assert!(is("a/b.rs") && is("a/Cargo.toml"));
        assert!(!is("a/b.c") && !is("a/other.toml"));
    }
}
