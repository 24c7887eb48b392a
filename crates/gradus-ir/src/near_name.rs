//! Suggestions for misspelled names in diagnostics.

/// Returns the known name nearest to `name` by Levenshtein distance, if at most a third of the letters of `name`
/// differ (rounded up).
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter();
    let (steps, nearest) = known
        .map(|other| (strsim::levenshtein(name, other), other))
        .min()?;
    (steps <= name.len().div_ceil(3)).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[test]
    fn names_of_few_other_letters_are_near() {
        let known = ["energy", "force", "sitting"];
        assert_eq!(nearest_name("enrgy", known), Some("energy"));
        assert_eq!(
            nearest_name("kitten", ["sitten", "sitting"]),
            Some("sitten")
        );
        assert_eq!(nearest_name("kitten", known), None);
        assert_eq!(nearest_name("", ["abc"]), None);
    }
}
