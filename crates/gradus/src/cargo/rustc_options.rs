//! The options of rustc for a program with derivatives.
//!
//! - All crates of the target are bitcode (`linker-plugin-lto`), not optimised by LLVM before the passes.
//! - The optimisation level is at least 2: below, rustc takes instances of generic functions from the compiled standard
//!   library, and the passes cannot see them. Debug assertions and overflow checks stay as the profile says.
//! - Lines are recorded for diagnostics.

use gradus_pipeline::Level;
use std::path::{Path, PathBuf};

/// The options of one run of rustc or rustdoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The changed arguments.
    pub args: Vec<String>,
    /// True if rustc links a program, a test or a shared library for the target.
    pub links: bool,
    /// The real linker, if the user or the configuration names one.
    pub linker: Option<String>,
    /// The optimisation level of the passes.
    pub level: Level,
    /// The static library that rustc writes, if any.
    pub static_library: Option<PathBuf>,
}

/// Facts of the environment of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The linker that merges and differentiates.
    pub linker: &'a Path,
    /// The folder of the crate `gradus`, in its own compilation: lines of this crate count as library code.
    pub own_crate: Option<&'a str>,
}

/// The profile's settings that the changed options depend on.
#[derive(Default)]
struct Profile {
    level: Option<String>,
    debug: Option<String>,
    assertions: Option<String>,
    overflow: Option<String>,
    linker: Option<String>,
}

/// Options of code generation that are dropped.
const DROPPED: [&str; 5] = [
    "lto",
    "embed-bitcode",
    "linker-plugin-lto",
    "no-prepopulate-passes",
    "split-debuginfo",
];

/// Returns the changed options of a run of rustc; `None` if the run is not for the target, and stays as it is.
pub fn changed(args: &[String], run: Run<'_>) -> Option<Options> {
    let has = |name: &str| {
        let joined = format!("{name}=");
        (args.iter()).any(|arg| arg == name || arg.starts_with(&joined))
    };
    if !has("--target") {
        return None;
    }
    let (mut rest, profile) = without_profile(args);
    let condition = ["--cfg=gradus", "--check-cfg=cfg(gradus)"].map(String::from);
    rest.extend(condition);
    if let Some(folder) = run.own_crate {
        rest.push(format!("--remap-path-prefix={folder}=/rustc/gradus"));
    }
    let kinds: Vec<&str> = values(args, "--crate-type");
    let program = |kind: &&str| matches!(*kind, "bin" | "cdylib" | "dylib" | "proc-macro");
    let is_program = kinds.is_empty() || kinds.iter().any(program) || has("--test");
    let emits = values(args, "--emit");
    let links = emits.is_empty()
        || emits
            .iter()
            .any(|kinds| kinds.split(',').any(|k| k == "link"));
    let compiles = links && !has("--print");
    let level = match profile.level.as_deref() {
        Some("3") => Level::O3,
        _ => Level::O2,
    };
    let linker = profile.linker.clone();
    rest.extend(profile.options(level, run.linker));
    Some(Options {
        args: rest,
        links: compiles && is_program,
        linker,
        level,
        static_library: static_library(args).filter(|_| compiles && kinds.contains(&"staticlib")),
    })
}

/// Returns the path of the static library of Cargo's command line.
fn static_library(args: &[String]) -> Option<PathBuf> {
    let folder = values(args, "--out-dir").last().copied()?;
    let name = values(args, "--crate-name").last().copied()?;
    let extra = (args.iter()).find_map(|arg| {
        let option = arg.strip_prefix("-C").unwrap_or(arg);
        option.strip_prefix("extra-filename=")
    });
    Some(Path::new(folder).join(format!("lib{name}{}.a", extra.unwrap_or_default())))
}

/// Returns the values of a repeated option.
fn values<'a>(args: &'a [String], option: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        match arg.strip_prefix(option) {
            Some("") => found.extend(args.get(at + 1).map(String::as_str)),
            Some(rest) => found.extend(rest.strip_prefix('=')),
            None => {}
        }
    }
    found
}

/// Separates the options that change from the others.
fn without_profile(args: &[String]) -> (Vec<String>, Profile) {
    let mut profile = Profile::default();
    let mut rest = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let option = match word.as_str() {
            "-C" | "--codegen" => words.next().cloned(),
            "-O" => Some("opt-level=3".to_string()),
            "-g" => Some("debuginfo=2".to_string()),
            joined => (joined
                .strip_prefix("-C")
                .or(joined.strip_prefix("--codegen=")))
            .map(String::from),
        };
        let Some(option) = option else {
            rest.push(word.clone());
            continue;
        };
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        let value = Some(value.to_string());
        match name.replace('_', "-").as_str() {
            "opt-level" => profile.level = value,
            "debuginfo" => profile.debug = value,
            "debug-assertions" => profile.assertions = value,
            "overflow-checks" => profile.overflow = value,
            "linker" => profile.linker = value,
            dropped if DROPPED.contains(&dropped) => {}
            _ => rest.push(format!("-C{option}")),
        }
    }
    (rest, profile)
}

impl Profile {
    fn options(self, level: Level, linker: &Path) -> [String; 7] {
        let is_debug = matches!(self.level.as_deref(), None | Some("0"));
        let on = |given: Option<String>, default: bool| match given.as_deref() {
            None => default,
            Some(text) => !matches!(text, "no" | "off" | "n" | "false"),
        };
        let word = |is_on: bool| if is_on { "on" } else { "off" };
        let assertions = on(self.assertions, is_debug);
        let overflow = on(self.overflow, assertions);
        let lines = match self.debug.as_deref() {
            None | Some("0" | "none") => "line-tables-only".to_string(),
            Some("") => "2".to_string(),
            Some(given) => given.to_string(),
        };
        let level = match level {
            Level::O3 => "3",
            _ => "2",
        };
        [
            format!("-Copt-level={level}"),
            format!("-Cdebug-assertions={}", word(assertions)),
            format!("-Coverflow-checks={}", word(overflow)),
            format!("-Cdebuginfo={lines}"),
            "-Cno-prepopulate-passes".to_string(),
            "-Clinker-plugin-lto".to_string(),
            format!("-Clinker={}", linker.display()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Option<Options> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        let run = Run {
            linker: Path::new("/t/link"),
            own_crate: None,
        };
        changed(&args, run)
    }

    #[test]
    fn host_crates_stay_as_they_are() {
        assert_eq!(
            options("--crate-name build_script_build --crate-type bin -C opt-level=0"),
            None
        );
        assert_eq!(options("-vV"), None);
    }

    #[test]
    fn a_debug_profile_keeps_its_checks() {
        let debug = options(
            "--crate-type bin --emit=dep-info,link -C debuginfo=2 --target x -C embed-bitcode=no a.rs",
        );
        let debug = debug.expect("for the target");
        assert!(debug.links && debug.level == Level::O2);
        for expected in [
            "-Copt-level=2",
            "-Cdebug-assertions=on",
            "-Coverflow-checks=on",
            "-Cdebuginfo=2",
        ] {
            assert!(debug.args.iter().any(|arg| arg == expected), "{expected}");
        }
        assert!(!debug.args.iter().any(|arg| arg.contains("embed-bitcode")));
        let release = options(
            "--crate-type lib --emit=dep-info,metadata,link -C opt-level=3 --target x -Clto -Clinker=ld",
        );
        let release = release.expect("for the target");
        assert!(!release.links && release.level == Level::O3);
        assert_eq!(release.linker.as_deref(), Some("ld"));
        for expected in [
            "-Copt-level=3",
            "-Cdebug-assertions=off",
            "-Cdebuginfo=line-tables-only",
        ] {
            assert!(release.args.iter().any(|arg| arg == expected), "{expected}");
        }
        let library = options(
            "--crate-type staticlib --crate-name a --emit=link --target=x --out-dir /o -C extra-filename=-1",
        );
        let library = library.and_then(|options| options.static_library);
        assert_eq!(library.as_deref(), Some(Path::new("/o/liba-1.a")));
        let checked = options("--crate-type bin --emit=dep-info,metadata --target=x")
            .expect("for the target");
        assert!(!checked.links);
    }
}
