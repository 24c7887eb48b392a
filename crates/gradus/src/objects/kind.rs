//! Kind of a file by its path or bytes: LLVM IR, bitcode, archive, linked program or shared library.
//!
//! Sources, the link and the embedded runtime library ask before they parse a file.

use object::{Object, ObjectKind};
use std::path::Path;

/// Returns true if a path names LLVM IR, or an object that may carry it.
pub(crate) fn is_ir(file: &Path) -> bool {
    let extension = file.extension().and_then(|e| e.to_str());
    matches!(extension, Some("bc" | "ll" | "o"))
}

/// Returns true if a file is LLVM bitcode, as emitted for LTO (`-flto`).
pub(crate) fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde")
}

/// Returns true if a file is an archive, by extension.
pub(crate) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "a")
}

/// Returns true for a program or a shared library.
pub(crate) fn is_linked(bytes: &[u8]) -> bool {
    object::File::parse(bytes).is_ok_and(|file| file.kind() != ObjectKind::Relocatable)
}
