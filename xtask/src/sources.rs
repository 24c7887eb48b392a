//! Finds the C sources that other people's crates ship: real code, of a fixed version, from the registry.
//!
//! Cargo does the work: a manifest written into the build folder names the crate, and `cargo metadata`
//! downloads it (once) and says where it lies. None of its Rust code is built, and none of its code
//! becomes part of this project.

use crate::process::{self, Failure, Outcome};
use crate::workspace;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A crate that ships C sources, and the folder inside it where they lie.
pub struct Shipped {
    crate_name: &'static str,
    version: &'static str,
    folder: &'static str,
}

/// ERFA, the astronomers' library.
pub const ERFA: Shipped = Shipped {
    crate_name: "erfa-sys",
    version: "0.2.1",
    folder: "ext/erfa/src",
};

/// sqlite, as one file.
pub const SQLITE: Shipped = Shipped {
    crate_name: "libsqlite3-sys",
    version: "0.39.1",
    folder: "sqlite3",
};

/// zlib.
pub const ZLIB: Shipped = Shipped {
    crate_name: "libz-sys",
    version: "1.1.31",
    folder: "src/zlib",
};

impl Shipped {
    /// The folder of the sources.
    ///
    /// # Errors
    /// Where the crate cannot be had, or does not hold that folder.
    pub fn locate(&self) -> Outcome<PathBuf> {
        let package = package(self.crate_name, self.version)?;
        let folder = package.join(self.folder);
        if folder.is_dir() {
            Ok(folder)
        } else {
            Err(Failure::new(format!(
                "{} {} holds no {}",
                self.crate_name, self.version, self.folder
            )))
        }
    }
}

/// The folder of a crate of exactly this version.
fn package(name: &str, version: &str) -> Outcome<PathBuf> {
    let folder = workspace::target()
        .join("sources")
        .join(format!("{name}-{version}"));
    let manifest = folder.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n\
         [lib]\npath = \"empty.rs\"\n\n[workspace]\n\n[dependencies]\n{name} = \"={version}\"\n"
    );
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text)
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))
    };
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("cannot make {}: {e}", folder.display())))?;
    write(&folder.join("empty.rs"), "")?;
    write(&manifest, &text)?;
    let metadata = |offline: bool| {
        let mut cargo = workspace::cargo();
        cargo
            .current_dir(&folder)
            .args(["metadata", "--format-version", "1", "--manifest-path"])
            .arg(&manifest);
        if offline {
            cargo.arg("--offline");
        }
        process::capture(&mut cargo)
    };
    // What is there already needs no network.
    let text = metadata(true).or_else(|_| metadata(false))?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|e| Failure::new(format!("cargo metadata: {e}")))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages
        .filter(|p| p["name"] == name && p["version"] == version)
        .find_map(|p| {
            Path::new(p["manifest_path"].as_str()?)
                .parent()
                .map(Path::to_path_buf)
        });
    found.ok_or_else(|| Failure::new(format!("cargo does not say where {name} {version} lies")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_not_there_is_an_error() {
        let nowhere = Shipped {
            crate_name: "serde_json",
            version: "0.0.999",
            folder: "src",
        };
        assert!(nowhere.locate().is_err());
    }
}
