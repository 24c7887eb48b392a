//! ERFA, the astronomers' library of C functions: real code that nobody here wrote, as a test.
//!
//! Flow: its sources come from a crate (`library`), its prototypes say which arguments are real
//! (`prototypes`), its own test program gives sensible values for them (`points`); for each function two
//! C units are written (`program`), its derivative is built and judged by differences (`survey`).

mod library;
mod points;
mod program;
mod prototypes;
mod survey;

pub use library::Library;
pub use survey::run;
