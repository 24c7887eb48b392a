//! `gradus install PREFIX`: copies the command with all files that belong to it below a prefix.
//!
//! The tree is relocatable: the command finds headers and the compiling program by its own path, and the CMake and
//! pkg-config files name paths relative to their own. `share/gradus/files` lists the files, for removal ([`crate::uninstall`]).

use crate::said::outln;
use crate::session::Session;
use crate::surroundings::{HEADERS, INCLUDE_FOLDER};
use clap::Args;
use gradus::files::{Content, Outputs};
use gradus::{Code, Diagnostic, runtime_library};
use std::path::{Path, PathBuf};

/// Names of links to the command.
const LINKS: [&str; 5] = [
    "cargo-gradus",
    "gradus-cc",
    "gradus-c++",
    "gradus-fc",
    "gradus-nvcc",
];

/// Texts with `@VERSION@` and `@WRAP_OPTIONS@`, by path below the prefix.
const TEXTS: &[(&str, &str)] = &[
    (
        "lib/cmake/Gradus/GradusConfig.cmake",
        include_str!("../install/GradusConfig.cmake"),
    ),
    (
        "lib/cmake/Gradus/GradusConfigVersion.cmake",
        include_str!("../install/GradusConfigVersion.cmake"),
    ),
    (
        "lib/pkgconfig/gradus.pc",
        include_str!("../install/gradus.pc"),
    ),
    (
        "share/doc/gradus/copyright",
        include_str!("../../../LICENSE"),
    ),
    (
        "share/doc/gradus/CHANGELOG.md",
        include_str!("../../../CHANGELOG.md"),
    ),
];

/// Sources of the crates for Rust programs, by path below [`RUST_FOLDER`].
const RUST_CRATES: &[(&str, &str)] = &[
    (
        "gradus/Cargo.toml",
        include_str!("../../../rust/gradus/Cargo.toml"),
    ),
    (
        "gradus/src/lib.rs",
        include_str!("../../../rust/gradus/src/lib.rs"),
    ),
    (
        "gradus/src/closures.rs",
        include_str!("../../../rust/gradus/src/closures.rs"),
    ),
    (
        "gradus/src/internal.rs",
        include_str!("../../../rust/gradus/src/internal.rs"),
    ),
    (
        "gradus-macros/Cargo.toml",
        include_str!("../../../rust/gradus-macros/Cargo.toml"),
    ),
    (
        "gradus-macros/src/lib.rs",
        include_str!("../../../rust/gradus-macros/src/lib.rs"),
    ),
    (
        "gradus-macros/src/activity.rs",
        include_str!("../../../rust/gradus-macros/src/activity.rs"),
    ),
    (
        "gradus-macros/src/derivative.rs",
        include_str!("../../../rust/gradus-macros/src/derivative.rs"),
    ),
    (
        "gradus-macros/src/request.rs",
        include_str!("../../../rust/gradus-macros/src/request.rs"),
    ),
];

/// The folder of the crates for Rust programs below the prefix of an installation.
const RUST_FOLDER: &str = "share/gradus/rust";

/// The list of installed files, below the prefix.
pub const MANIFEST: &str = "share/gradus/files";

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  gradus install ~/.local\n  gradus install /usr/local")]
pub struct Words {
    /// The folder: `bin`, `lib`, `include` and `share` are made inside
    prefix: PathBuf,
}

/// Runs the command; `generated` are further files, by path below the prefix. Returns the exit status.
pub fn run(session: &Session, words: &Words, generated: Vec<(PathBuf, Vec<u8>)>) -> u8 {
    let prefix = &words.prefix;
    match install(session, prefix, generated) {
        Ok(count) => {
            outln!("installed {count} files below {}", prefix.display());
            outln!("add {} to PATH", prefix.join("bin").display());
            0
        }
        Err(finding) => session.fail(finding),
    }
}

/// Installs all files. Returns their number.
fn install(
    session: &Session,
    prefix: &Path,
    generated: Vec<(PathBuf, Vec<u8>)>,
) -> Result<usize, Diagnostic> {
    let settings = &session.settings;
    if !settings.child.is_file() {
        let message = format!("{} is missing", settings.child.display());
        return Err(Diagnostic::error(Code::FileAccess, message)
            .help("build both programs: `cargo build --release -p gradus-cli`"));
    }
    let mut files: Vec<(PathBuf, Content)> = vec![
        ("bin/gradus".into(), Content::File(settings.program.clone())),
        (
            "lib/gradus/gradus-compiler".into(),
            Content::File(settings.child.clone()),
        ),
        (
            "lib/libgradus_rt.a".into(),
            Content::Bytes(runtime_library::archive()),
        ),
    ];
    let headers = HEADERS.iter().map(|(name, text)| {
        let path = Path::new(INCLUDE_FOLDER).join(name);
        (path, Content::Bytes(text.as_bytes().to_vec()))
    });
    files.extend(headers);
    files.extend(RUST_CRATES.iter().map(|(name, text)| {
        let path = Path::new(RUST_FOLDER).join(name);
        (path, Content::Bytes(text.as_bytes().to_vec()))
    }));
    files.extend(TEXTS.iter().map(|(path, text)| {
        let text = text
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
            .replace("@WRAP_OPTIONS@", &wrap_options(path));
        (PathBuf::from(path), Content::Bytes(text.into_bytes()))
    }));
    let generated = generated.into_iter();
    files.extend(generated.map(|(path, text)| (path, Content::Bytes(text))));
    let links = LINKS.iter().map(|name| Path::new("bin").join(name));
    let mut names: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
    names.extend(links.clone());
    names.push(MANIFEST.into());
    names.sort();
    let lines: String = names
        .iter()
        .map(|name| format!("{}\n", name.display()))
        .collect();
    files.push((MANIFEST.into(), Content::Bytes(lines.into_bytes())));

    let mut outputs = Outputs::default();
    for (path, content) in files {
        let path = prefix.join(path);
        make_folder(path.parent().unwrap_or(prefix))?;
        outputs.add(&path, content);
    }
    outputs.commit(&settings.leftovers)?;
    for link in links {
        gradus::files::link_to(Path::new("gradus"), &prefix.join(link))?;
    }
    Ok(names.len())
}

/// Returns the linker options that redirect OpenMP's functions to the run-time library, as a list of CMake or as
/// words.
fn wrap_options(path: &str) -> String {
    let options: Vec<String> = (runtime_library::wrap_options().iter())
        .map(|option| format!("-Wl,{option}"))
        .collect();
    options.join(if path.ends_with(".cmake") { ";" } else { " " })
}

fn make_folder(folder: &Path) -> Result<(), Diagnostic> {
    std::fs::create_dir_all(folder).map_err(|e| {
        let message = format!("cannot make the folder {}: {e}", folder.display());
        Diagnostic::error(Code::FileAccess, message)
            .help("install into a folder of your own: `gradus install ~/.local`")
    })
}
