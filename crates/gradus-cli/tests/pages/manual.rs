//! The pages of the manual are true: commands end as the page says, and print the output that the page shows.
//! Tests of the Python package run the Python blocks.

use super::session::{Kind, Session, blocks, kind, shows};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the manual with pages and tests of their own.
const ELSEWHERE: &[&str] = &["decisions", "diagnostics"];

/// The page at the root of the clone, relative to the manual.
const README: &str = "../README";

/// Commands that a page may use.
const PROGRAMS: &[&str] = &[
    "gradus",
    "gradus-cc",
    "gradus-c++",
    "gradus-fc",
    "gradus-nvcc",
];

fn manual() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Follows a page. A page whose commands mention `$PREFIX` gets an installation there.
fn follow(page: &str) {
    let text = std::fs::read_to_string(manual().join(format!("{page}.md"))).expect("a page");
    let at =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{}", page.replace('/', "-")));
    let gradus = Path::new(env!("CARGO_BIN_EXE_gradus"));
    let parts = blocks(&text);
    let needs_prefix = parts
        .iter()
        .any(|(info, text)| *info == "sh" && text.contains("$PREFIX"));
    let session = Session::new(at, gradus, PROGRAMS);
    if needs_prefix {
        let mut install = Command::new(gradus);
        let done = install
            .arg("install")
            .arg(session.prefix())
            .output()
            .expect("gradus runs");
        assert!(done.status.success(), "{done:?}");
    }
    match session.follow(&parts) {
        Ok(count) => assert!(count > 0, "{page} runs nothing"),
        Err(why) => panic!("{page}: {why}"),
    }
}

macro_rules! pages {
    ($($name:ident: $page:literal;)*) => {
        $(
            #[test]
            fn $name() {
                follow($page);
            }
        )*
        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    readme: "../README";
    concepts_activity: "concepts/activity";
    concepts_refusals: "concepts/refusals";
    concepts_tape: "concepts/tape";
    howto_build_systems: "howto/build-systems";
    howto_check: "howto/check";
    howto_checkpoints: "howto/checkpoints";
    howto_custom_derivatives: "howto/custom-derivatives";
    howto_libraries: "howto/libraries";
    howto_memory: "howto/memory";
    howto_openmp: "howto/openmp";
    howto_optimizers: "howto/optimizers";
    howto_report: "howto/report";
    howto_second_derivatives: "howto/second-derivatives";
    howto_several_files: "howto/several-files";
    howto_shared_library: "howto/shared-library";
    howto_sparse: "howto/sparse";
    howto_whole_programs: "howto/whole-programs";
    install: "install";
    performance_guide: "performance/guide";
    reference_cli: "reference/cli";
    reference_cuda: "reference/cuda";
    reference_diagnostics: "reference/diagnostics";
    reference_openmp: "reference/openmp";
    tour_c: "tour/c";
    tour_cpp: "tour/cpp";
    tour_cuda: "tour/cuda";
    tour_fortran: "tour/fortran";
    tour_rust: "tour/rust";
}

/// Returns the pages below a folder of the manual, as paths without extension.
fn pages_below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(manual().join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if entry.path().is_dir() && !ELSEWHERE.contains(&path.as_str()) {
            found.extend(pages_below(&path));
        } else if let Some(page) = path.strip_suffix(".md") {
            found.push(page.to_owned());
        }
    }
    found
}

/// Every page with commands has a test; a file's name stands in the text before the file; code without a file name
/// is marked as text.
#[test]
fn every_block_is_run_or_marked() {
    let mut wrong = Vec::new();
    let mut pages = pages_below("");
    pages.push(README.to_owned());
    for page in pages {
        let text = std::fs::read_to_string(manual().join(format!("{page}.md"))).expect("a page");
        let mut runs = false;
        for (info, _) in blocks(&text) {
            match kind(info) {
                Kind::Commands | Kind::Refused => runs = true,
                Kind::Unnamed(language) => {
                    wrong.push(format!("{page}: `{language}` has no file name"))
                }
                Kind::File(name) => {
                    let place = text.find(&format!("```{info}")).expect("the block");
                    let base = name.rsplit('/').next().unwrap_or(name);
                    if !text[..place].contains(&format!("`{base}`"))
                        && !text[..place].contains(&format!("`{name}`"))
                    {
                        wrong.push(format!("{page}: no text names `{name}`"));
                    }
                }
                Kind::Output | Kind::Python | Kind::Text => {}
            }
        }
        if runs != PAGES.contains(&page.as_str()) {
            wrong.push(format!("{page}: commands {runs}, test {}", !runs));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_output_has_the_lines_of_a_block() {
    let said = "a\nlong line\nb  \nc\nd\n";
    for block in [
        "b\nc\n",
        "a\n…\nd\n",
        "…\nd\n",
        "a\n…\n",
        "a\nlong …\n…\nd\n",
    ] {
        assert!(shows(said, block), "{block}");
    }
    for block in ["a\nc\n", "d\n…\na\n", "b\nb\n", "…\ne\n", "a\nlog …\n"] {
        assert!(!shows(said, block), "{block}");
    }
}
