//! Links of HTML pages: each leads to a file of the book, and a fragment to an element of the page.

use crate::process::{Failure, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Largest number of broken links in a failure.
const SHOWN_MAX: usize = 20;

/// Checks the links of all pages below `folder`. Returns the number of links to pages and files of the book.
///
/// # Errors
/// Fails if a link leads nowhere; the failure names the page and the link.
pub fn check(folder: &Path) -> Outcome<usize> {
    let mut files = BTreeMap::new();
    collect(folder, Path::new(""), &mut files)?;
    let (mut count, mut broken) = (0, Vec::new());
    for (page, text) in files
        .iter()
        .filter_map(|(page, text)| Some((page, text.as_ref()?)))
    {
        for link in attributes(text, &["href", "src"]) {
            if is_elsewhere(link) {
                continue;
            }
            count += 1;
            if !leads_somewhere(&files, page, link) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    match broken.is_empty() {
        true => Ok(count),
        false => {
            let more = broken.len().saturating_sub(SHOWN_MAX);
            broken.truncate(SHOWN_MAX);
            Err(Failure::new(format!(
                "broken links ({more} more):\n  {}",
                broken.join("\n  ")
            )))
        }
    }
}

/// Files of the book, with the text of pages.
type Files = BTreeMap<PathBuf, Option<String>>;

fn collect(root: &Path, inside: &Path, files: &mut Files) -> Outcome<()> {
    let folder = root.join(inside);
    let cannot = |e| Failure::new(format!("cannot read {}: {e}", folder.display()));
    for entry in std::fs::read_dir(&folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let place = inside.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &place, files)?;
        } else {
            let is_page = place.extension().is_some_and(|e| e == "html");
            let text = is_page
                .then(|| std::fs::read_to_string(entry.path()))
                .transpose();
            files.insert(place, text.map_err(cannot)?);
        }
    }
    Ok(())
}

/// Returns true for a link to another site, and for an address of a program.
fn is_elsewhere(link: &str) -> bool {
    let scheme = link.split(['/', '#', '?']).next().unwrap_or_default();
    scheme.contains(':') || link.starts_with("//")
}

fn leads_somewhere(files: &Files, page: &Path, link: &str) -> bool {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_path_buf(),
        path => match joined(page.parent().unwrap_or(Path::new("")), path) {
            Some(target) => target,
            None => return false,
        },
    };
    match files.get(&target) {
        None => false,
        Some(Some(text)) if !fragment.is_empty() => {
            let ids: BTreeSet<&str> = attributes(text, &["id", "name"]).collect();
            ids.contains(fragment) || ids.contains(decoded(fragment).as_str())
        }
        Some(_) => true,
    }
}

/// Joins a relative link to a folder; `None` if the link leaves the book.
fn joined(folder: &Path, link: &str) -> Option<PathBuf> {
    let mut target = folder.to_path_buf();
    for part in Path::new(&decoded(link)).components() {
        match part {
            Component::ParentDir => {
                if !target.pop() {
                    return None;
                }
            }
            Component::Normal(name) => target.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(target)
}

/// Decodes `%20` and similar.
fn decoded(link: &str) -> String {
    let bytes = link.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = link.get(at + 1..at + 3).filter(|_| byte == b'%');
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the values of these attributes in the tags of a page.
fn attributes<'a>(text: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let tags = text
        .split('<')
        .skip(1)
        .filter_map(|part| part.split_once('>'));
    let tags = tags
        .map(|(tag, _)| tag)
        .filter(|tag| !tag.starts_with(['/', '!']));
    tags.flat_map(move |tag| {
        names.iter().filter_map(move |name| {
            let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
            tag[start..].split('"').next()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(link: &str) -> bool {
        let page = |text: &str| Some(text.to_owned());
        let files = BTreeMap::from([
            (PathBuf::from("a/x.html"), page("<h1 id=\"top\">")),
            (
                PathBuf::from("y z.html"),
                page("<a id=\"einf%C3%BChrung\">"),
            ),
            (PathBuf::from("a/f.c"), None),
        ]);
        leads_somewhere(&files, Path::new("a/x.html"), link)
    }

    #[test]
    fn links_to_files_and_elements_lead_somewhere() {
        for link in [
            "x.html",
            "#top",
            "f.c",
            "../a/x.html#top",
            "../y%20z.html",
            "./f.c",
        ] {
            assert!(leads(link), "{link}");
        }
    }

    #[test]
    fn other_links_lead_nowhere() {
        for link in [
            "y.html",
            "#bottom",
            "../x.html",
            "../../a/x.html",
            "/a/x.html",
            "x.html#end",
        ] {
            assert!(!leads(link), "{link}");
        }
    }

    #[test]
    fn attributes_of_tags_are_found() {
        let text = "a <a class=\"b\" href=\"c.html\">href=\"no\"</a> <img src=\"d.png\"/><!-- <a href=\"e\"> -->";
        let found: Vec<&str> = attributes(text, &["href", "src"]).collect();
        assert_eq!(found, ["c.html", "d.png", "e"]);
    }

    #[test]
    fn other_sites_are_not_checked() {
        assert!(
            is_elsewhere("https://a.b/c") && is_elsewhere("mailto:a@b") && is_elsewhere("//a.b")
        );
        assert!(!is_elsewhere("a/b:c.html") && !is_elsewhere("#a:b"));
    }
}
