//! `cargo xtask docs`: the manual as a book of HTML pages below `target/docs/book`, by mdBook, with a search index.
//!
//! The book is built from a copy of `docs`, the pages at the root of the clone, `examples` and `include`, in the places
//! of the clone: links between all of them work in the clone and in the book. `docs/SUMMARY.md` lists the chapters
//! (`tidy` checks that it lists all).
//! `links` checks the links of the book, `browser` opens pages without a server.
//!
//! The tests of the command and of the Python package run the code of the pages.

pub mod browser;
mod links;

use crate::process::{self, Failure, Outcome};
use crate::tidy::{chapters, tree};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of mdBook; an installed mdBook of another version is not used.
const MDBOOK: &str = "0.5.4";
/// The list of chapters.
const SUMMARY: &str = chapters::SUMMARY;
/// The settings of the book.
const SETTINGS: &str = "docs/book.toml";
/// Folders with pages and with files that pages link to.
const FOLDERS: &[&str] = &["docs/", "examples/", "include/"];
/// Page at the root of the book.
const FIRST_PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Gradus</title>\n\
     <meta http-equiv=\"refresh\" content=\"0; url=docs/index.html\">\n</head>\n\
     <body><a href=\"docs/index.html\">The Gradus manual</a></body>\n</html>\n";

/// Builds and checks the book.
///
/// # Errors
/// Fails if mdBook cannot be installed, if a link leads nowhere, or if a
/// page does not work in the browser.
pub fn run(arguments: &[String]) -> Outcome<()> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask docs"));
    }
    let book = workspace::target().join("docs");
    workspace::remove(&book)?;
    copy(&workspace::root(), &book)?;
    let mut build = Command::new(mdbook()?);
    build.arg("build").arg(&book).env("MDBOOK_LOG", "warn");
    process::show(&mut build)?;
    let pages = book.join("book");
    write(&pages.join("index.html"), FIRST_PAGE)?;
    let count = links::check(&pages)?;
    println!(
        "docs: {count} links of {} lead to a page or a file",
        pages.display()
    );
    browser::check(&pages)?;
    println!("wrote {}", pages.join("index.html").display());
    Ok(())
}

/// Returns mdBook; installs the program below the build folder unless the user has this version.
fn mdbook() -> Outcome<PathBuf> {
    let version = format!("mdbook v{MDBOOK}");
    let is_right = |program: &Path| {
        process::capture(Command::new(program).arg("--version")).is_ok_and(|v| v.trim() == version)
    };
    let tools = workspace::target().join("tools");
    let installed = tools.join("bin/mdbook");
    for program in [PathBuf::from("mdbook"), installed.clone()] {
        if is_right(&program) {
            return Ok(program);
        }
    }
    println!("docs: installing {version}");
    let build = tools.join("build");
    let mut install = workspace::cargo();
    // The development profile without debug information compiles fastest.
    install.env("CARGO_PROFILE_DEV_DEBUG", "0");
    install.env("CARGO_TARGET_DIR", &build).args([
        "install",
        "mdbook",
        "--quiet",
        "--locked",
        "--debug",
        "--force",
        "--no-default-features",
        "--features",
        "search",
        "--version",
        MDBOOK,
        "--root",
    ]);
    process::show(install.arg(&tools))?;
    workspace::remove(&build)?;
    Ok(installed)
}

/// Copies the source of the book, and writes the list of chapters for the root of the copy.
fn copy(root: &Path, book: &Path) -> Outcome<()> {
    let files = tree::files(root)?;
    let is_root_page =
        |file: &str| !file.contains('/') && (file.ends_with(".md") || file == "LICENSE");
    let source = book.join("src");
    let read = |file: &str| {
        std::fs::read_to_string(root.join(file))
            .map_err(|e| Failure::new(format!("cannot read {file}: {e}")))
    };
    for file in &files {
        if !(is_root_page(file) || FOLDERS.iter().any(|folder| file.starts_with(folder))) {
            continue;
        }
        if file == SUMMARY || file == SETTINGS {
            continue;
        }
        let to = source.join(file);
        let cannot = |e| Failure::new(format!("cannot copy {file}: {e}"));
        std::fs::create_dir_all(to.parent().unwrap_or(&source)).map_err(cannot)?;
        match file.ends_with(".md") {
            true => write(&to, &links_to_index(&read(file)?))?,
            false => drop(std::fs::copy(root.join(file), &to).map_err(cannot)?),
        }
    }
    let summary = chapters_from_root(&read(SUMMARY)?);
    write(&source.join("SUMMARY.md"), &summary)?;
    write(&book.join("book.toml"), &read(SETTINGS)?)
}

/// Rewrites links to `README.md`: mdBook writes such a page as `index.html`.
fn links_to_index(page: &str) -> String {
    let ends = [")", "#", "\n"];
    ends.iter().fold(page.to_owned(), |text, end| {
        text.replace(&format!("README.md{end}"), &format!("index.md{end}"))
    })
}

/// Rewrites the links of the list of chapters, relative to `docs`, as links relative to the root of the clone.
fn chapters_from_root(summary: &str) -> String {
    summary.replace("](", "](docs/").replace("](docs/../", "](")
}

fn write(file: &Path, text: &str) -> Outcome<()> {
    std::fs::write(file, text)
        .map_err(|e| Failure::new(format!("cannot write {}: {e}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_have_the_places_of_the_clone() {
        let summary = "- [C](tour/c.md)\n- [Rules](../CONTRIBUTING.md)\n";
        let expected = "- [C](docs/tour/c.md)\n- [Rules](CONTRIBUTING.md)\n";
        assert_eq!(chapters_from_root(summary), expected);
    }

    #[test]
    fn links_to_a_readme_are_rewritten() {
        let page = "[a](x/README.md), [b](README.md#c), `README.md`\n[d]: README.md\n";
        let expected = "[a](x/index.md), [b](index.md#c), `README.md`\n[d]: index.md\n";
        assert_eq!(links_to_index(page), expected);
    }
}
