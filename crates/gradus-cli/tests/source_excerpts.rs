//! Diagnostics show the line of the source, wherever the file lies and whatever its encoding.

use crate::support::{folder, refuses};

/// flang records the folder of a file apart from its name; diagnostics show the line all the same.
#[test]
fn fortran_in_another_folder_has_an_excerpt() {
    let at = folder("fortran_elsewhere");
    std::fs::create_dir_all(at.join("sub")).expect("a folder");
    std::fs::create_dir_all(at.join("other")).expect("a folder");
    let program = "! caf\u{e9}\nsubroutine outer(x, y)\n  real(8) :: x, y\n  y = x * x\n  call unknown(y)\nend\n";
    let latin: Vec<u8> = program.chars().map(|c| c as u8).collect();
    std::fs::write(at.join("sub/a.f90"), latin).expect("written");
    for (folder, file) in [
        (".", "sub/a.f90"),
        ("other", "../sub/a.f90"),
        ("sub", "a.f90"),
    ] {
        let line = format!("grad {file} -f outer -o a.o");
        let said = refuses(&at.join(folder), &line, "GRD0005");
        assert!(said.contains("call unknown(y)"), "{file}: {said}");
        assert!(said.contains("a.f90:5:"), "{file}: {said}");
    }
}
