//! A short run of random C programs through the whole compiler: no wrong derivative, no crash, no hang.

use std::process::Command;

#[test]
fn random_c_programs_have_right_derivatives() {
    let run = Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .args(["--count", "60", "--seed", "500"])
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{told}");
    let right = told.lines().find_map(|l| l.trim().strip_suffix("  ok"));
    let right: u32 = right.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    assert!(right >= 220, "{right} of 240 are right\n{told}");
}
