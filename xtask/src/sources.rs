//! Locates third-party C sources: crates of a fixed version that ship C code, and Debian's source packages.
//!
//! Cargo fetches crates: a manifest in the build folder names the crate, and `cargo metadata` downloads the
//! crate once and prints its folder. None of the Rust code is built. apt-get fetches Debian's packages with
//! package lists in the build folder, hence the machine's lists and packages do not change. None of the code
//! becomes part of this project.

use crate::process::{self, Failure, Outcome};
use crate::workspace;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crate that ships C sources, and the folder of the sources inside the crate.
pub struct Shipped {
    crate_name: &'static str,
    version: &'static str,
    folder: &'static str,
}

/// ERFA, a library of astronomy.
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

/// Source package of Debian: the released sources, without Debian's changes.
pub struct Debian {
    package: &'static str,
}

/// musl, a C library with a libm.
pub const MUSL: Debian = Debian { package: "musl" };

/// GSL, the GNU Scientific Library.
pub const GSL: Debian = Debian { package: "gsl" };

/// NLopt, an optimisation library.
pub const NLOPT: Debian = Debian { package: "nlopt" };

/// Address and release of Debian's packages.
const DEBIAN: &str = "deb-src http://deb.debian.org/debian bookworm main\n";

impl Debian {
    /// Returns the folder of the sources.
    ///
    /// # Errors
    /// Fails if the package cannot be fetched.
    pub fn locate(&self) -> Outcome<PathBuf> {
        let folder = workspace::target().join("sources").join(self.package);
        let unpacked = folder.join("unpacked");
        if unpacked.is_dir() {
            return Ok(unpacked);
        }
        let lists = workspace::target().join("sources/debian");
        for made in [
            &folder,
            &lists.join("lists/partial"),
            &lists.join("cache/archives/partial"),
        ] {
            std::fs::create_dir_all(made)
                .map_err(|e| Failure::new(format!("cannot create {}: {e}", made.display())))?;
        }
        let list = lists.join("sources.list");
        if !list.is_file() {
            std::fs::write(&list, DEBIAN)
                .map_err(|e| Failure::new(format!("cannot write {}: {e}", list.display())))?;
            let updated = process::capture(apt_get(&lists).arg("update"));
            if let Err(failure) = updated {
                // The next call fetches the lists again.
                let _ = std::fs::remove_file(&list);
                return Err(failure);
            }
        }
        let mut fetch = apt_get(&lists);
        fetch.args(["source", "--download-only", self.package]);
        process::capture(fetch.current_dir(&folder))?;
        self.unpack(&folder, &unpacked)
    }

    fn unpack(&self, folder: &Path, unpacked: &Path) -> Outcome<PathBuf> {
        let failed = |e: std::io::Error| Failure::new(format!("{}: {e}", folder.display()));
        let entries = std::fs::read_dir(folder).map_err(failed)?;
        let mut names = entries.flatten().map(|e| e.path());
        let archive = names.find(|path| {
            let name = path.to_string_lossy();
            name.contains(".orig.tar.") && !name.ends_with(".asc")
        });
        let archive = archive.ok_or_else(|| {
            Failure::new(format!("Debian has no source archive of {}", self.package))
        })?;
        let half = folder.join("half");
        std::fs::create_dir_all(&half).map_err(failed)?;
        let mut tar = Command::new("tar");
        tar.arg("xf")
            .arg(&archive)
            .args(["--strip-components=1", "-C"])
            .arg(&half);
        process::capture(&mut tar)?;
        std::fs::rename(&half, unpacked).map_err(failed)?;
        Ok(unpacked.to_path_buf())
    }
}

/// Returns `apt-get` with private package lists.
fn apt_get(lists: &Path) -> Command {
    let mut command = Command::new("apt-get");
    for (option, value) in [
        ("Dir::Etc::SourceList", "sources.list"),
        ("Dir::Etc::SourceParts", "none"),
        ("Dir::State::Lists", "lists"),
        ("Dir::Cache", "cache"),
    ] {
        command
            .arg("-o")
            .arg(format!("{option}={}", lists.join(value).display()));
    }
    // apt's sandbox user may not write to the folder of the lists.
    command.args(["-o", "APT::Sandbox::User=root"]);
    command
}

impl Shipped {
    /// Returns the folder of the sources.
    ///
    /// # Errors
    /// Fails if the crate cannot be fetched or lacks the folder.
    pub fn locate(&self) -> Outcome<PathBuf> {
        let package = package(self.crate_name, self.version)?;
        let folder = package.join(self.folder);
        if folder.is_dir() {
            Ok(folder)
        } else {
            Err(Failure::new(format!(
                "{} {} does not contain {}",
                self.crate_name, self.version, self.folder
            )))
        }
    }
}

/// Returns the folder of a crate of exactly the given version.
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
        .map_err(|e| Failure::new(format!("cannot create {}: {e}", folder.display())))?;
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
    // A crate in cargo's cache needs no network.
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
    found.ok_or_else(|| Failure::new(format!("cargo metadata does not contain {name} {version}")))
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
