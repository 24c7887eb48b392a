//! The extension module `gradus._native`: calls functions and derivatives of shared libraries that `gradus grad
//! --emit shared --entry uniform` writes.
//!
//! The compiler is never part of the interpreter's process: the package `gradus` (folder `python`) runs the command
//! `gradus` in a child process, and plans the calls. A [`plan::Plan`] states the Python parameters of a call, the
//! arguments of the uniform entry and the outputs; a [`caller::Caller`] checks the parameters and calls the entry.
//! [`coloring`] colours the sparsity patterns of Jacobians and Hessians.
#![deny(missing_docs)]

mod arrays;
mod caller;
mod coloring;
mod library;
mod plan;

use pyo3::prelude::*;

/// The module `gradus._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<library::Library>()?;
    module.add_class::<caller::Caller>()?;
    module.add_function(wrap_pyfunction!(coloring::color_columns, module)?)?;
    module.add_function(wrap_pyfunction!(coloring::color_star, module)?)
}
