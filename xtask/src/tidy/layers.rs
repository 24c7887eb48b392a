//! Rule on imports between crates: the table of layers, and the check of the manifests against the table.
//!
//! A crate imports only from lower layers, never from its own layer. Tests of a crate may use any crate. Build
//! scripts use no crate of the workspace.

use super::Finding;
use crate::process::{self, Failure, Outcome};
use crate::workspace;
use serde_json::Value;
use std::path::Path;

/// Layer and imports of a crate.
struct Row {
    name: &'static str,
    layer: u8,
    may: Imports,
}

/// Returns a row of [`LAYERS`].
const fn row(name: &'static str, layer: u8, may: Imports) -> Row {
    Row { name, layer, may }
}

/// Crates of the workspace that a crate may import.
enum Imports {
    /// Only the listed crates.
    Only(&'static [&'static str]),
    /// Every crate of a lower layer.
    Lower,
    /// Every crate.
    All,
}

/// Layer of crates outside the stack.
const BESIDE: u8 = u8::MAX;
/// Imports of a crate directly above the IR.
const IR: Imports = Imports::Only(&["gradus-ir"]);
/// Imports of a crate of transforms.
const TRANSFORM: Imports = Imports::Only(&["gradus-ir", "gradus-edit", "gradus-analysis"]);
/// Imports of a tool with a user interface.
const TOOL: Imports = Imports::Only(&["gradus"]);
/// No imports.
const NONE: Imports = Imports::Only(&[]);

/// All crates.
// table
const LAYERS: &[Row] = &[
    row("gradus-ir", 0, NONE),
    row("gradus-edit", 1, IR),
    row("gradus-interp", 1, IR),
    row("gradus-analysis", 1, IR),
    row("gradus-llvm", 1, IR),
    row("gradus-raise", 2, TRANSFORM),
    row("gradus-simplify", 2, TRANSFORM),
    row("gradus-ad", 2, TRANSFORM),
    row("gradus-par", 2, TRANSFORM),
    row("gradus-gpu", 2, TRANSFORM),
    row("gradus-pipeline", 3, Imports::Lower),
    row("gradus", 4, Imports::Lower),
    row("gradus-cli", 5, TOOL),
    row("gradus-python", 5, NONE),
    row("gradus-rt", BESIDE, NONE),
    row("gradus-testkit", BESIDE, Imports::All),
    row("xtask", BESIDE, NONE),
];

/// Returns the layer of a crate; `None` for an unknown crate or a crate outside the stack.
pub fn layer(name: &str) -> Option<u8> {
    find(name).map(|r| r.layer).filter(|&l| l != BESIDE)
}

/// Returns the names of all crates.
pub fn crates() -> impl Iterator<Item = &'static str> {
    LAYERS.iter().map(|row| row.name)
}

/// Returns the row of a crate.
fn find(name: &str) -> Option<&'static Row> {
    LAYERS.iter().find(|r| r.name == name)
}

/// Manifest of a crate.
pub struct Manifest {
    /// Name of the crate.
    pub name: String,
    /// Path of the manifest from the root of the clone.
    pub file: String,
    /// Dependencies.
    pub imports: Vec<Import>,
}

/// One dependency.
pub struct Import {
    /// Imported crate.
    pub name: String,
    /// Purpose.
    pub kind: Kind,
}

/// Purpose of a dependency.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The crate itself.
    Normal,
    /// Its tests.
    Dev,
    /// Its build script.
    Build,
}

/// Reads the manifests of the workspace at `root` through cargo.
///
/// # Errors
/// Fails if cargo cannot read the manifests.
pub fn manifests(root: &Path) -> Outcome<Vec<Manifest>> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(root).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let text = process::capture(&mut cargo)?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|e| Failure::new(format!("cargo metadata: {e}")))?;
    Ok(array(&metadata["packages"])
        .map(|p| manifest(root, p))
        .collect())
}

/// Returns the elements of a JSON array; none for another value.
fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Reads one package of cargo's metadata.
fn manifest(root: &Path, package: &Value) -> Manifest {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let path = text(&package["manifest_path"]);
    let file = Path::new(&path)
        .strip_prefix(root)
        .map_or(path.clone(), |p| p.display().to_string());
    let imports = array(&package["dependencies"])
        .map(|d| Import {
            name: text(&d["name"]),
            kind: match d["kind"].as_str() {
                Some("dev") => Kind::Dev,
                Some("build") => Kind::Build,
                _ => Kind::Normal,
            },
        })
        .collect();
    Manifest {
        name: text(&package["name"]),
        file,
        imports,
    }
}

/// Returns the imports that violate the table.
pub fn check(manifests: &[Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for m in manifests {
        let Some(own) = find(&m.name) else {
            let message = format!(
                "crate `{}` has no row in the table of layers (xtask/src/tidy/layers.rs)",
                m.name
            );
            findings.push(Finding::new(&m.file, 1, message));
            continue;
        };
        let folder = m
            .file
            .strip_suffix("/Cargo.toml")
            .and_then(|f| f.rsplit('/').next());
        if folder != Some(m.name.as_str()) {
            findings.push(Finding::new(
                &m.file,
                1,
                format!("the folder and the crate `{}` have different names", m.name),
            ));
        }
        for import in &m.imports {
            if let Some(target) = find(&import.name)
                && !allowed(own, target, import.kind)
            {
                let message = format!(
                    "`{}` may not import `{}` ({})",
                    m.name,
                    import.name,
                    reason(own, target)
                );
                findings.push(Finding::new(&m.file, 1, message));
            }
        }
    }
    findings
}

/// Returns whether the table allows an import.
fn allowed(own: &Row, target: &Row, kind: Kind) -> bool {
    match (kind, &own.may) {
        (Kind::Dev, _) => own.name != "xtask",
        (Kind::Build, _) => false,
        (Kind::Normal, Imports::All) => true,
        (Kind::Normal, Imports::Lower) => target.layer < own.layer,
        (Kind::Normal, Imports::Only(names)) => names.contains(&target.name),
    }
}

/// Describes the layers of both crates.
fn reason(own: &Row, target: &Row) -> String {
    let place = |r: &Row| match r.layer {
        BESIDE => "outside the stack".to_owned(),
        l => format!("layer {l}"),
    };
    format!("{} and {}", place(own), place(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, import: &str, kind: Kind) -> Vec<Finding> {
        check(&[Manifest {
            name: name.into(),
            file: format!("crates/{name}/Cargo.toml"),
            imports: vec![Import {
                name: import.into(),
                kind,
            }],
        }])
    }

    #[test]
    fn arrows_point_down() {
        assert!(one("gradus-ad", "gradus-ir", Kind::Normal).is_empty());
        assert!(one("gradus-pipeline", "gradus-llvm", Kind::Normal).is_empty());
        assert!(one("gradus-ad", "smallvec", Kind::Normal).is_empty());
        assert!(one("gradus-edit", "gradus-interp", Kind::Dev).is_empty());
        assert!(one("gradus-testkit", "gradus", Kind::Normal).is_empty());
    }

    #[test]
    fn arrows_up_and_across_are_flagged() {
        for (name, import) in [
            ("gradus-ir", "gradus-edit"),
            ("gradus-ad", "gradus-simplify"),
            ("gradus-ad", "gradus-llvm"),
            ("gradus-edit", "gradus-analysis"),
            ("gradus-cli", "gradus-ad"),
            ("gradus-rt", "gradus-ir"),
            ("xtask", "gradus"),
            ("gradus-simplify", "gradus-testkit"),
        ] {
            assert_eq!(
                one(name, import, Kind::Normal).len(),
                1,
                "{name} -> {import}"
            );
        }
        assert_eq!(one("gradus-llvm", "gradus-ir", Kind::Build).len(), 1);
        assert_eq!(one("xtask", "gradus-testkit", Kind::Dev).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_or_in_a_wrong_folder_is_flagged() {
        assert_eq!(one("gradus-mystery", "smallvec", Kind::Normal).len(), 1);
        let moved = Manifest {
            name: "gradus-ir".into(),
            file: "crates/ir/Cargo.toml".into(),
            imports: vec![],
        };
        assert_eq!(check(&[moved]).len(), 1);
    }

    #[test]
    fn no_row_allows_its_own_layer() {
        for own in LAYERS.iter().filter(|r| r.layer != BESIDE) {
            for target in LAYERS.iter().filter(|t| t.layer >= own.layer) {
                assert!(
                    !allowed(own, target, Kind::Normal),
                    "{} -> {}",
                    own.name,
                    target.name
                );
            }
        }
    }

    #[test]
    fn cargo_tells_our_own_manifest() {
        let all = manifests(&workspace::root()).unwrap();
        let own = all.iter().find(|m| m.name == "xtask").unwrap();
        assert_eq!(own.file, "xtask/Cargo.toml");
        assert!(
            own.imports
                .iter()
                .any(|i| i.name == "serde_json" && i.kind == Kind::Normal)
        );
    }
}
