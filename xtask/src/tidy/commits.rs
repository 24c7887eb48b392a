//! Rule on commits: each commit has a short subject with a known area, and a body.
//!
//! Reads `git log` from [`BASE`] to the present commit. Without git, in a shallow clone or on a history without
//! [`BASE`], nothing is checked, and a note says so.

use super::Finding;
use super::layers;
use crate::process::{self, Outcome};
use std::path::Path;
use std::process::Command;

/// Last commit to which the rule does not apply.
const BASE: &str = "cbba8b2bc9632ea52887401d95e473af0141e6d6";

/// Largest length of a subject, in characters.
const SUBJECT_CHARS_MAX: usize = 72;

/// Areas that are no crates.
const AREAS: &[&str] = &["docs", "xtask", "bench", "tests", MERGE];

/// Area of merge commits. The merged commits have bodies, thus a merge needs none.
const MERGE: &str = "merge";

/// One commit.
struct Commit {
    id: String,
    subject: String,
    body: String,
}

/// Returns the commits that break the rule, or the reason why nothing was checked.
pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let commits = commits(root).map_err(|reason| format!("commits: not checked: {reason}"))?;
    Ok(commits.iter().filter_map(judge).collect())
}

/// Reads the commits after [`BASE`].
fn commits(root: &Path) -> Result<Vec<Commit>, String> {
    let is_shallow = git(root, &["rev-parse", "--is-shallow-repository"])
        .map_err(|_| "no git repository".to_owned())?;
    if is_shallow.trim() == "true" {
        return Err("the clone is shallow".into());
    }
    git(root, &["merge-base", "--is-ancestor", BASE, "HEAD"])
        .map_err(|_| format!("commit {BASE} is not an ancestor of HEAD"))?;
    let range = format!("{BASE}..HEAD");
    let log = git(root, &["log", "--format=%H%x00%s%x00%b%x01", &range])
        .map_err(|failure| failure.to_string())?;
    Ok(log.split('\u{1}').filter_map(parse).collect())
}

/// Runs git in the clone and returns its output.
fn git(root: &Path, arguments: &[&str]) -> Outcome<String> {
    process::capture(Command::new("git").current_dir(root).args(arguments))
}

/// Reads one record of the log; `None` behind the last record.
fn parse(record: &str) -> Option<Commit> {
    let mut fields = record.trim_start().split('\0');
    Some(Commit {
        id: fields.next().filter(|id| !id.is_empty())?.to_owned(),
        subject: fields.next()?.to_owned(),
        body: fields.next()?.to_owned(),
    })
}

/// Returns the finding on a commit that breaks the rule.
fn judge(commit: &Commit) -> Option<Finding> {
    let problems = problems(commit);
    let short = commit.id.get(..12).unwrap_or(&commit.id);
    (!problems.is_empty()).then(|| {
        let message = format!("\"{}\": {}", commit.subject, problems.join("; "));
        Finding::new(&format!("commit {short}"), 1, message)
    })
}

/// Returns the violations of the rule by a commit.
fn problems(commit: &Commit) -> Vec<String> {
    let mut problems = Vec::new();
    let length = commit.subject.chars().count();
    if length > SUBJECT_CHARS_MAX {
        problems.push(format!(
            "the subject has {length} characters, at most {SUBJECT_CHARS_MAX} are allowed"
        ));
    }
    let area = area(&commit.subject);
    match area {
        None => {
            problems.push("the subject does not have the form `area: imperative summary`".into())
        }
        Some(area) if area.contains(',') => problems.push(format!(
            "several areas `{area}`: name the crate whose subject changed, or split the commit"
        )),
        Some(area) if !is_area(area) => problems.push(format!(
            "unknown area `{area}`: expected a crate without `gradus-`, or {}",
            AREAS.join(", ")
        )),
        Some(_) => {}
    }
    if area != Some(MERGE) && !has_body(&commit.body) {
        problems.push("the commit has no body: state problem, cause, change and test".into());
    }
    problems
}

/// Returns the words before the colon of a subject; `None` without a colon or a summary.
fn area(subject: &str) -> Option<&str> {
    let (area, summary) = subject.split_once(": ")?;
    (!summary.trim().is_empty()).then_some(area)
}

/// Returns whether a word is a crate without `gradus-`, or a word of [`AREAS`].
fn is_area(area: &str) -> bool {
    AREAS.contains(&area)
        || layers::crates().any(|name| name.strip_prefix("gradus-").unwrap_or(name) == area)
}

/// Returns whether a body has a line that is no trailer such as `Signed-off-by:`.
fn has_body(body: &str) -> bool {
    let is_trailer = |line: &str| {
        line.split_once(": ")
            .is_some_and(|(key, _)| key.ends_with("-by") && !key.contains(' '))
    };
    body.lines()
        .any(|line| !line.trim().is_empty() && !is_trailer(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(subject: &str, body: &str) -> Vec<String> {
        problems(&Commit {
            id: "0123456789abcdef".into(),
            subject: subject.into(),
            body: body.into(),
        })
    }

    #[test]
    fn a_commit_with_area_and_body_passes() {
        for subject in [
            "ad: restore loop bounds from the tape",
            "gradus: read archives",
            "docs: describe the tape",
        ] {
            assert!(
                judged(subject, "The bounds were lost.\n").is_empty(),
                "{subject}"
            );
        }
        assert!(judged("merge: renamed files", "").is_empty());
    }

    #[test]
    fn long_subjects_are_flagged() {
        let subject = format!("ad: {}", "x".repeat(69));
        assert_eq!(judged(&subject, "Why.").len(), 1);
        assert!(judged(&subject[..72], "Why.").is_empty());
    }

    #[test]
    fn unknown_areas_are_flagged() {
        for subject in [
            "Restore loop bounds",
            "gradus-ad: restore loop bounds",
            "fix: restore loop bounds",
            "Merge branch 'x'",
            "ad:",
        ] {
            assert_eq!(judged(subject, "Why.").len(), 1, "{subject}");
        }
    }

    #[test]
    fn several_areas_are_flagged() {
        for subject in [
            "edit, simplify: share the predicate",
            "ad,ir: x",
            "merge, ad: x",
        ] {
            let problems = judged(subject, "Why.");
            assert_eq!(problems.len(), 1, "{subject}");
            assert!(problems[0].contains("several areas"), "{problems:?}");
        }
    }

    #[test]
    fn a_missing_body_is_flagged() {
        assert_eq!(judged("ad: restore loop bounds", "").len(), 1);
        assert_eq!(
            judged("ad: restore loop bounds", "\nSigned-off-by: A\n").len(),
            1
        );
    }

    #[test]
    fn records_of_the_log_are_read() {
        let log = "a1\0ad: x\0Body.\nMore.\n\u{1}\nb2\0ir: y\0\u{1}\n";
        let all: Vec<Commit> = log.split('\u{1}').filter_map(parse).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].body, "Body.\nMore.\n");
        assert_eq!(
            (all[1].id.as_str(), all[1].subject.as_str()),
            ("b2", "ir: y")
        );
    }

    #[test]
    fn a_folder_without_git_is_not_checked() {
        let reason = check(Path::new("/")).unwrap_err();
        assert!(reason.contains("not checked"), "{reason}");
    }
}
