//! Every switch of the tape plan has a page of `bench/switches` on which the optimisation pays. With the
//! switch off, the derivative is equally right, and needs at least twice the bytes if bytes are saved.

use std::path::{Path, PathBuf};
use std::process::Command;

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/switches")
}

/// Returns the bytes allocated by the gradient of a page at a size; the page itself checks the gradient.
fn bytes(page: &str, without: Option<&str>, size: &str) -> f64 {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("switches");
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join(format!("{page}-{}", without.unwrap_or("on")));
    let mut build = Command::new(env!("CARGO_BIN_EXE_gradus"));
    build
        .args(["cc", "-O2", "-Wl,--wrap=malloc,--wrap=calloc,--wrap=free"])
        .arg(pages().join(format!("{page}.c")))
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .args(without.map(|switch| format!("--gradus-without={switch}")));
    let built = build.output().expect("gradus runs");
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "{page} without {without:?}: {said}");
    let ran = Command::new(&program).args([size, "1"]).output();
    let ran = ran.expect("the page runs");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{page} without {without:?}: {said}");
    let word = said.split_whitespace().nth(1).map(str::parse);
    word.and_then(Result::ok).expect("bytes")
}

/// Returns the growth in bytes of a page with its switch off.
fn ratio(page: &str, size: &str) -> f64 {
    bytes(page, Some(page), size) / bytes(page, None, size).max(1.0)
}

#[test]
fn variance_cost() {
    assert!(ratio("loop-variance-cost", "100") > 2.0);
}

#[test]
fn snapshots() {
    assert!(ratio("snapshots", "60") > 2.0);
}

#[test]
fn versioning() {
    assert!(ratio("alias-versioning", "2000") > 2.0);
}

#[test]
fn conditions() {
    assert!(ratio("save-conditions", "500") > 2.0);
}

#[test]
fn shadow_pointers() {
    assert!(ratio("shadow-pointers", "8000") > 2.0);
}

#[test]
fn backwards() {
    assert!(ratio("invert-inductions", "100000") > 2.0);
}

#[test]
fn early_frees() {
    assert!(ratio("early-frees", "1000") > 2.0);
}

#[test]
fn local_loops() {
    assert!(ratio("unroll-local-arrays", "1000") > 2.0);
}

#[test]
fn lists() {
    assert!(ratio("index-array-copies", "2000") > 2.0);
}

#[test]
fn replay() {
    assert!(ratio("recompute-loops", "200") > 2.0);
}

/// The segmented tape saves time: a segment needs less memory than separate blocks only for many frames. In
/// small, the test shows that without segments the frames are heap blocks.
#[test]
fn segment_stack() {
    let page = "segmented-tape";
    let (on, off) = (bytes(page, None, "4"), bytes(page, Some(page), "4"));
    assert!(on > 60_000.0, "one segment: {on}");
    assert!(off < 20_000.0, "only the frames: {off}");
}
