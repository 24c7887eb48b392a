//! Shared libraries of derivatives, loaded into the interpreter.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::path::PathBuf;

/// A uniform entry: receives the addresses of the arguments' values, then the address of the result.
pub(crate) type Entry = unsafe extern "C" fn(*mut *mut c_void);

/// A loaded library. The library is never unloaded: its functions may have started threads.
#[pyclass(frozen, module = "gradus._native")]
pub(crate) struct Library {
    library: &'static libloading::Library,
    path: PathBuf,
}

#[pymethods]
impl Library {
    /// Loads the library at `path`.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        // SAFETY: the library holds code that the user asked to run; its constructors are the program's own.
        let library = unsafe { libloading::Library::new(&path) };
        let library = library.map_err(|e| PyOSError::new_err(e.to_string()))?;
        Ok(Library {
            library: Box::leak(Box::new(library)),
            path,
        })
    }
}

impl Library {
    /// Returns the uniform entry with a symbol.
    pub(crate) fn entry(&self, symbol: &str) -> PyResult<Entry> {
        // SAFETY: the signature that the compiler wrote beside the library names the symbol as a uniform entry.
        let entry = unsafe { self.library.get::<Entry>(symbol) };
        match entry {
            Ok(entry) => Ok(*entry),
            Err(error) => {
                let message = format!("{}: {error}", self.path.display());
                Err(PyOSError::new_err(message))
            }
        }
    }
}
