//! Third parties in a package: a bill of materials (CycloneDX, JSON) and the texts of all licences.
//!
//! Crates come from `cargo metadata`, the archives of a static build from Debian's packages.
//!
//! # Invariants
//! Equal sources and equal archives give equal files: no time, no random number.

use super::static_llvm;
use crate::process::{self, Failure, Outcome};
use crate::workspace;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bill of materials, below the prefix of an installation.
pub const BILL: &str = "share/doc/gradus/sbom.cdx.json";
/// The texts of the licences.
pub const LICENCES: &str = "share/doc/gradus/third-party-licenses";

/// A third party's part.
struct Part {
    name: String,
    version: String,
    /// SPDX expression.
    licence: String,
    /// Package URL.
    url: String,
    /// Texts of the licence; a crate may have none.
    texts: Vec<String>,
}

/// Where LLVM is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Llvm {
    /// In the programs.
    Inside,
    /// A library of the system.
    Outside,
}

/// Writes both files for programs that are made of `crates` and their dependencies.
///
/// # Errors
/// Fails if a part has no version or no licence, or if a file cannot be written.
pub fn write(tree: &Path, crates: &[&str], llvm: Llvm) -> Outcome<()> {
    let mut ask = workspace::cargo();
    ask.args(["metadata", "--format-version", "1", "--locked"]);
    let text = process::capture(ask.args(["--filter-platform", super::host()?.as_str()]))?;
    let metadata = serde_json::from_str(&text).map_err(|e| Failure::new(e.to_string()))?;
    let mut parts = crate_parts(&metadata, crates)?;
    if llvm == Llvm::Inside {
        for (archive, path) in static_llvm::contents()? {
            parts.push(archive_part(archive, &path)?);
        }
    }
    let place = |name: &str, text: String| {
        let path = tree.join(name);
        std::fs::write(&path, text)
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))
    };
    place(BILL, format!("{:#}\n", bill(&parts)))?;
    place(LICENCES, licences(&parts))
}

/// Returns the crates of registries on which `roots` depend, build scripts and tests aside, sorted.
fn crate_parts(metadata: &Value, roots: &[&str]) -> Outcome<Vec<Part>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let is_root = |package: &Value| package["name"].as_str().is_some_and(|n| roots.contains(&n));
    let mut open: Vec<&String> = (packages.iter())
        .filter(|(_, package)| is_root(package))
        .map(|(id, _)| id)
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !reached.insert(id) {
            continue;
        }
        for dependency in list(&nodes[id]["deps"]) {
            // A dependency of the program has no kind; `build` and `dev` are the kinds of the others.
            if list(&dependency["dep_kinds"])
                .iter()
                .any(|kind| kind["kind"].is_null())
            {
                open.extend(
                    nodes
                        .get_key_value(&text(&dependency["pkg"]))
                        .map(|(id, _)| id),
                );
            }
        }
    }
    let mut parts = Vec::new();
    for package in reached.iter().map(|id| &packages[*id]) {
        if package["source"].is_null() {
            continue;
        }
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        // An older form of "or".
        let licence = text(&package["license"]).replace('/', " OR ");
        if licence.is_empty() {
            return Err(Failure::new(format!("{name} {version} states no licence")));
        }
        let folder = PathBuf::from(text(&package["manifest_path"]));
        parts.push(Part {
            url: format!("pkg:cargo/{name}@{version}"),
            texts: licence_texts(folder.parent().unwrap_or(&folder))?,
            name,
            version,
            licence,
        });
    }
    parts.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(parts)
}

/// Returns the texts of the licence files in the folder of a crate.
fn licence_texts(folder: &Path) -> Outcome<Vec<String>> {
    const NAMES: &[&str] = &[
        "COPYING",
        "COPYRIGHT",
        "LICENCE",
        "LICENSE",
        "NOTICE",
        "UNLICENSE",
    ];
    let cannot = |e| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = std::fs::read(&path).map_err(cannot)?;
            texts.push(String::from_utf8_lossy(&bytes).trim().to_owned());
        }
    }
    texts.sort();
    Ok(texts)
}

/// Returns the part of an archive: version and licence are those of the Debian package.
fn archive_part(archive: &static_llvm::Archive, path: &Path) -> Outcome<Part> {
    let owner = process::capture(Command::new("dpkg").arg("-S").arg(path))?;
    let owner = owner.split([':', ',']).next().unwrap_or_default();
    let mut ask = Command::new("dpkg-query");
    let version = process::capture(ask.args(["-W", "-f", "${Version}", owner]))?;
    let file = Path::new("/usr/share/doc").join(owner).join("copyright");
    let text = std::fs::read_to_string(&file)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())))?;
    Ok(Part {
        name: archive.project.into(),
        // Colons stand before the version of the archive ("epoch").
        url: format!("pkg:deb/debian/{owner}@{}", version.replace(':', "%3A")),
        version,
        licence: archive.licence.into(),
        texts: vec![text.trim().to_owned()],
    })
}

/// Returns the bill of materials.
fn bill(parts: &[Part]) -> Value {
    let components: Vec<Value> = (parts.iter())
        .map(|part| {
            json!({
                "type": "library",
                "name": part.name,
                "version": part.version,
                "licenses": [{ "expression": part.licence }],
                "purl": part.url,
            })
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "name": "gradus",
            "version": env!("CARGO_PKG_VERSION"),
            "licenses": [{ "expression": "Apache-2.0 WITH LLVM-exception" }],
        }},
        "components": components,
    })
}

/// Returns all licences; equal texts stand once, below the names of the parts.
fn licences(parts: &[Part]) -> String {
    let mut all = String::new();
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for part in parts {
        let name = format!("{} {}", part.name, part.version);
        all += &format!("{name}: {}\n", part.licence);
        for text in &part.texts {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    for (text, names) in by_text {
        let line = "-".repeat(80);
        all += &format!("\n{line}\n{}\n\n{text}\n", names.join(", "));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with a crate, the crate's build dependency, and a crate that only tests use.
    fn metadata(folder: &Path, licence: &str) -> Value {
        let package = |name: &str, source: Value| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": licence, "source": source,
                "manifest_path": folder.join("Cargo.toml"),
            })
        };
        let edge =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let registry = || json!("registry");
        json!({
            "packages": [
                package("root", Value::Null), package("used", registry()),
                package("built", registry()), package("tests", registry()),
            ],
            "resolve": { "nodes": [
                { "id": "root", "deps": [edge("used", Value::Null), edge("tests", json!("dev"))] },
                { "id": "used", "deps": [edge("built", json!("build"))] },
                { "id": "built", "deps": [] },
                { "id": "tests", "deps": [] },
            ]},
        })
    }

    #[test]
    fn the_bill_lists_crates_of_the_program_only() {
        let folder = std::env::temp_dir();
        let parts = crate_parts(&metadata(&folder, "MIT/Apache-2.0"), &["root"]).expect("parts");
        let bill = bill(&parts);
        assert_eq!(
            bill["components"],
            json!([{
                "type": "library", "name": "used", "version": "1.0.0", "purl": "pkg:cargo/used@1.0.0",
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            }])
        );
    }

    #[test]
    fn a_crate_without_a_licence_is_refused() {
        let folder = std::env::temp_dir();
        assert!(crate_parts(&metadata(&folder, ""), &["root"]).is_err());
    }

    #[test]
    fn equal_licence_texts_stand_once() {
        let part = |name: &str, text: &str| Part {
            name: name.into(),
            version: "1".into(),
            licence: "MIT".into(),
            url: String::new(),
            texts: vec![text.into()],
        };
        let all = licences(&[part("a", "text"), part("b", "text"), part("c", "other")]);
        assert!(all.starts_with("a 1: MIT\nb 1: MIT\nc 1: MIT\n"), "{all}");
        assert_eq!(all.matches("\na 1, b 1\n\ntext\n").count(), 1, "{all}");
        assert_eq!(all.matches("\nc 1\n\nother\n").count(), 1, "{all}");
    }
}
