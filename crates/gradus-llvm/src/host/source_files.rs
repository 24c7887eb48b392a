//! Names of source files for messages, from the names and the folders in the debug information.
//!
//! clang records the name as passed, and the folder of the compilation. flang records the last part of the path, and the
//! folder of the file, in all scopes but the compile unit. A name for a message is relative to the folder of the
//! compilation, like the name on the compiler's command line, or absolute.

use crate::host::ffi::text_of;
use llvm_sys::debuginfo::{LLVMDIFileGetDirectory, LLVMDIFileGetFilename, LLVMDIScopeGetFile};
use llvm_sys::prelude::LLVMMetadataRef;
use std::ffi::c_char;

unsafe extern "C" {
    fn gr_unit_directory(scope: LLVMMetadataRef, len: *mut usize) -> *const c_char;
}

/// The folder of Rust's standard library in debug information. The files are library code, and do not exist.
const RUST_LIBRARY: &str = "/rustc/";

/// Returns the name of a scope's file for messages; empty without a file.
///
/// # Safety
/// `scope` is a live `DILocalScope`.
pub(crate) unsafe fn file_name(scope: LLVMMetadataRef) -> String {
    // SAFETY: by the contract, the metadata is a scope; the texts belong to its context.
    let (name, folder, unit) = unsafe {
        let file = LLVMDIScopeGetFile(scope);
        if file.is_null() {
            return String::new();
        }
        let (mut len, mut unit_len) = (0, 0);
        let name = LLVMDIFileGetFilename(file, &mut len);
        let name = text_of(name, len as usize);
        let folder = LLVMDIFileGetDirectory(file, &mut len);
        let folder = text_of(folder, len as usize);
        let unit = gr_unit_directory(scope, &mut unit_len);
        (name, folder, text_of(unit, unit_len))
    };
    name_from(&name, &folder, &unit)
}

/// Returns the name of the file `name` in `folder`, of a compilation in the folder `unit`.
fn name_from(name: &str, folder: &str, unit: &str) -> String {
    if name.starts_with('/') || folder.is_empty() {
        return name.to_string();
    }
    if folder.starts_with(RUST_LIBRARY) {
        return format!("{folder}/{name}");
    }
    match folder.strip_prefix(unit) {
        Some("") => name.to_string(),
        Some(inner) if inner.starts_with('/') && !unit.is_empty() => {
            format!("{}/{name}", &inner[1..])
        }
        _ if folder.starts_with('/') => format!("{folder}/{name}"),
        // A folder that the user's flags replaced (`-fdebug-prefix-map`).
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for (name, folder, shown) in [
            // clang.
            ("c.c", "/p", "c.c"),
            ("../q/b.c", "/p", "../q/b.c"),
            ("/q/b.c", "/p", "/q/b.c"),
            // flang records the file's folder.
            ("a.f90", "/p/sub", "sub/a.f90"),
            ("a.f90", "/p/../q", "../q/a.f90"),
            ("a.f90", "/q", "/q/a.f90"),
            ("a.f90", "/prefix", "/prefix/a.f90"),
            ("a.f90", ".", "a.f90"),
            ("a.f90", "", "a.f90"),
            (
                "library/core/src/ptr.rs",
                "/rustc/12",
                "/rustc/12/library/core/src/ptr.rs",
            ),
        ] {
            assert_eq!(name_from(name, folder, "/p"), shown, "{name} in {folder}");
        }
        assert_eq!(name_from("a.c", "/p", ""), "/p/a.c");
    }
}
