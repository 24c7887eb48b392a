//! What the environment says, as data for the layers below.

use gradus::Settings;
use std::path::PathBuf;

/// The settings of this process.
pub fn settings() -> Settings {
    let given = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    Settings {
        clang: given("GRADUS_CLANG"),
        path: std::env::split_paths(&path).collect(),
        temp: std::env::temp_dir(),
        child: std::env::current_exe().unwrap_or_else(|_| "gradus".into()),
    }
}
