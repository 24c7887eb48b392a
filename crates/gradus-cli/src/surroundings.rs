//! Reads the environment into [`Settings`], for the layers below.

use gradus::{Limits, Settings, TempFolders};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Returns the settings of this process.
pub fn settings() -> Settings {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_else(|_| "gradus".into());
    let store = cache_folder();
    let include = include_folder(&program, &store);
    Settings {
        clang: env_path("GRADUS_CLANG"),
        flang: env_path("GRADUS_FLANG"),
        path: std::env::split_paths(&path).collect(),
        environment: include
            .clone()
            .map(search_path_variables)
            .unwrap_or_default(),
        include,
        store,
        temp: std::env::temp_dir(),
        child: compiler_program(&program),
        program,
        limits: Limits::default(),
        progress: Default::default(),
        leftovers: TempFolders::default(),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        record: None,
    }
}

/// Returns the compiling program: in this program's folder, else in `lib/gradus` next to the folder.
fn compiler_program(program: &Path) -> PathBuf {
    const NAME: &str = "gradus-compiler";
    let beside = program.with_file_name(NAME);
    let prefix = program.parent().and_then(Path::parent);
    let installed = prefix.map(|prefix| prefix.join("lib/gradus").join(NAME));
    let installed = installed.filter(|file| file.is_file() && !beside.is_file());
    installed.unwrap_or(beside)
}

/// Gradus's headers, by path below `include`: for programs that request derivatives under Gradus's names,
/// and for CUDA programs.
pub const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// The folder of the headers below the prefix of an installation. The parent cannot serve: `/usr/include` is searched
/// after the C++ library's headers only.
pub const INCLUDE_FOLDER: &str = "include/gradus";

/// Returns the folder of Gradus's headers: of the installation that this program belongs to, else a folder of the
/// user's, written once per version.
fn include_folder(program: &Path, store: &Path) -> Option<PathBuf> {
    let installed = program.parent()?.parent()?.join(INCLUDE_FOLDER);
    if installed.join("gradus.h").is_file() {
        return Some(installed);
    }
    let folder = store.join("include");
    for (name, text) in HEADERS {
        let file = folder.join(name);
        if std::fs::read(&file).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        std::fs::create_dir_all(file.parent()?).ok()?;
        gradus::files::write(&file, text.as_bytes()).ok()?;
    }
    Some(folder)
}

/// Returns the folder for files kept between runs: the user's, for this version.
fn cache_folder() -> PathBuf {
    let folder = env_path("XDG_CACHE_HOME").or_else(|| Some(env_path("HOME")?.join(".cache")));
    let folder = folder.unwrap_or_else(std::env::temp_dir).join("gradus");
    folder.join(headers_version())
}

/// Returns a folder name unique to these headers.
fn headers_version() -> String {
    let mut hasher = DefaultHasher::new();
    HEADERS.hash(&mut hasher);
    format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

/// Returns the variable `name`, if set and not empty.
fn env_path(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|v| !v.is_empty());
    value.map(PathBuf::from)
}

/// Returns the variables that add the folder to the compilers' search paths, after all other folders.
fn search_path_variables(folder: PathBuf) -> Vec<(String, OsString)> {
    let with = |name: &str| {
        let given = std::env::var_os(name).unwrap_or_default();
        let mut folders: Vec<PathBuf> = std::env::split_paths(&given).collect();
        folders.push(folder.clone());
        let joined = std::env::join_paths(folders).unwrap_or(given);
        (name.to_string(), joined)
    };
    ["C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"].map(with).to_vec()
}
