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

macro_rules! pages_that_save_bytes {
    ($($test:ident $page:literal $size:literal;)*) => {
        /// The pages whose gradient needs at least twice the bytes without the optimisation.
        const SAVE_BYTES: &[&str] = &[$($page),*];
        $(#[test]
        fn $test() {
            assert!(ratio($page, $size) > 2.0);
        })*
    };
}

// table
pages_that_save_bytes! {
    loop_variance_cost "loop-variance-cost" "100";
    snapshots "snapshots" "60";
    alias_versioning "alias-versioning" "2000";
    save_conditions "save-conditions" "500";
    shadow_pointers "shadow-pointers" "8000";
    invert_inductions "invert-inductions" "100000";
    early_frees "early-frees" "1000";
    unroll_local_arrays "unroll-local-arrays" "1000";
    index_array_copies "index-array-copies" "2000";
    recompute_loops "recompute-loops" "200";
}

/// The pages with tests of their own.
const SAVE_TIME: &[&str] = &["alias-scopes", "segmented-tape"];

#[test]
fn every_page_has_a_test() {
    let files = std::fs::read_dir(pages()).expect("the folder");
    let mut pages: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.file_name().to_string_lossy().into_owned()))
        .filter_map(|file| Some(file.strip_suffix(".c")?.to_owned()))
        .collect();
    let mut tested: Vec<&str> = [SAVE_BYTES, SAVE_TIME].concat();
    pages.sort();
    tested.sort();
    assert_eq!(pages, tested);
}

/// Axiom S1 saves time, and no bytes: in small, the test compares the gradients.
#[test]
fn alias_scopes() {
    let page = "alias-scopes";
    assert_eq!(bytes(page, None, "1000"), bytes(page, Some(page), "1000"));
}

/// The segmented tape saves time: a segment needs less memory than separate blocks only for many frames. In
/// small, the test shows that without segments the frames are heap blocks.
#[test]
fn segmented_tape() {
    let page = "segmented-tape";
    let (on, off) = (bytes(page, None, "4"), bytes(page, Some(page), "4"));
    assert!(on > 60_000.0, "one segment: {on}");
    assert!(off < 20_000.0, "only the frames: {off}");
}
