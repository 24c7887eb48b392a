//! Acceptance test: every region of the programs in `bench/parallel` is raised.

#[allow(dead_code, reason = "the other tests use more of it")]
use gradus_raise::Outcome;
use std::path::Path;

/// Programs whose ranks are distinguished, possibly by unknown code: a team is left.
const TEAMS: &[&str] = &["16_accum_array.c"];

#[test]
fn every_region_of_the_programs_is_raised() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/parallel");
    let include = format!("-I{}", folder.display());
    let mut flags = crate::support::AS_BUILT.to_vec();
    flags.extend(["-fopenmp", &include]);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    names.sort();
    let mut regions = 0;
    for path in names {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .to_string();
        let source = std::fs::read_to_string(&path).expect("a program");
        let mut unit = crate::support::imported(&crate::support::bitcode(&source, &flags));
        let raised = crate::support::raised(&mut unit);
        for region in &raised.regions {
            let expected = match TEAMS.contains(&name.as_str()) {
                true => matches!(region.outcome, Outcome::Team(_)),
                false => matches!(region.outcome, Outcome::Loops | Outcome::Orphan),
            };
            assert!(expected, "{name}: {region:?}");
        }
        regions += raised.regions.len();
    }
    assert!(regions >= 18, "{regions}");
}
