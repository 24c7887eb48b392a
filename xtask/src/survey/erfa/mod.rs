//! ERFA, the astronomers' library of C functions.
//!
//! Flow: its sources come from a crate (`library`), its prototypes say which arguments are real
//! (`prototypes`), its own test program gives sensible values for them (`points`); for each function its
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

/// Every function with a real argument and a real result.
///
/// # Errors
/// Where the library cannot be had, or its own test program does not run.
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
            None => Err("ERFA's test program does not call it".into()),
        },
    });
    Ok(Collection {
        subjects: subjects.collect(),
        flags: vec![format!("-I{}", library.folder.display())],
        options: Vec::new(),
        archives: None,
    })
}
