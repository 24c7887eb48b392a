//! The bodies of flang's run-time functions agree with flang's library, bit by bit.
use std::path::Path;
use std::process::Command;

/// Compares all bodies without constants of a program: `tests/flang/compared.c`.
#[test]
fn bodies_agree_with_flangs_library() {
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let found = Command::new(&clang)
        .arg("-print-file-name=libflang_rt.runtime.a")
        .output()
        .expect("clang starts");
    let library = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compared");
    let compiled = Command::new(&clang)
        .args(["-std=c23", "-O1", "-Wno-pass-failed", "-fno-math-errno"])
        .args([
            "-fno-strict-aliasing",
            "-fwrapv-pointer",
            "-ffp-contract=off",
        ])
        .arg(here.join("tests/flang/compared.c"))
        .arg(library)
        .args(["-lm", "-lpthread", "-o"])
        .arg(&program)
        .output()
        .expect("clang starts");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let run = Command::new(&program).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "same\n");
}
