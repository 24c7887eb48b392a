//! Rule on the manual: `docs/SUMMARY.md` lists each page below `docs`.

use super::Finding;

/// List of chapters, relative to the root of the clone.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns a finding for each page below `docs` that the list of chapters lacks.
pub fn check(files: &[String], summary: &str) -> Vec<Finding> {
    let pages = files.iter().filter_map(|file| {
        let page = file.strip_prefix("docs/")?;
        (page.ends_with(".md") && file != SUMMARY).then_some(page)
    });
    pages
        .filter(|page| !summary.contains(&format!("]({page})")))
        .map(|page| Finding::new(SUMMARY, 1, format!("does not list `{page}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn pages_outside_of_the_list_are_found() {
        let files = ["docs/SUMMARY.md", "docs/a.md", "docs/b/c.md", "README.md"].map(str::to_owned);
        let found = check(&files, "- [A](a.md)\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, "does not list `b/c.md`");
        assert!(check(&files, "- [A](a.md)\n- [C](b/c.md)\n").is_empty());
    }
}
