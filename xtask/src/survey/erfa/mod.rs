//! ERFA, a C library of astronomy.
//!
//! Flow: a crate provides the sources (`library`), the prototypes list the real parameters (`prototypes`), and
//! ERFA's own test program provides sensible arguments (`points`). `program` writes the units of each function.
//! units are written (`program`).

mod library;
mod points;
mod program;
mod prototypes;

pub use library::Library;
pub use prototypes::without_comments;

use super::subject::{Collection, Subject};
use crate::process::{Failure, Outcome};
use crate::workspace;

/// Returns every function with a real parameter and a real result.
///
/// # Errors
/// Fails if the library is not available or if its test program does not run.
pub fn collection() -> Outcome<Collection> {
    let library = Library::open()?;
    let folder = workspace::target().join("survey/erfa");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    let points = points::record(&library, &folder)?;
    let functions = library.functions.iter().filter(|f| f.is_differentiable());
    let subjects = functions.map(|function| Subject {
        name: function.name.clone(),
        units: match points.get(&function.name) {
            Some(points) => Ok(program::units(&library, function, points)),
            None => Err("ERFA's test program does not call the function".into()),
        },
    });
    Ok(Collection {
        subjects: subjects.collect(),
        flags: vec![format!("-I{}", library.folder.display())],
        options: Vec::new(),
        archives: None,
    })
}
