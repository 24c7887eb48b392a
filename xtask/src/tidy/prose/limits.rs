//! Limits on the figures of prose, and their exceptions.
//!
//! # Invariants
//! An exception is needed: the figure of its unit is beyond the limit and at most as bad as the exception says.

use super::count::Counts;
use crate::tidy::Finding;
use std::collections::BTreeMap;

/// Figures that have a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Percentage of sentences that begin with a listed word.
    Openings,
    /// Pronoun-like words per 1,000 words.
    Pronouns,
    /// Terms of the field per 1,000 words.
    Field,
}

impl Figure {
    /// Returns the value for some counts, rounded to one decimal; 0 for no prose.
    fn of(self, counts: &Counts) -> f64 {
        let share = |part: usize, whole: usize, unit: f64| {
            (part as f64 * unit / whole.max(1) as f64 * 10.0).round() / 10.0
        };
        match self {
            Figure::Openings => share(counts.openings, counts.sentences, 100.0),
            Figure::Pronouns => share(counts.pronouns, counts.words, 1000.0),
            Figure::Field => share(counts.field, counts.words, 1000.0),
        }
    }

    /// Returns the description for messages.
    fn words(self) -> &'static str {
        match self {
            Figure::Openings => {
                "% of the sentences begin with What, Who, Where, So, As, Of, That, Whether, But or Else"
            }
            Figure::Pronouns => "pronoun-like words per 1,000: repeat the noun",
            Figure::Field => "terms of the field per 1,000: use the field's terms",
        }
    }
}

/// Limit on one figure.
struct Limit {
    figure: Figure,
    bound: Bound,
    /// Units where the limit applies; all if empty.
    units: &'static [&'static str],
}

/// Bound on a figure.
#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// Returns whether a value is within the bound.
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtMost(limit) => value <= limit,
            Bound::AtLeast(limit) => value >= limit,
        }
    }

    /// Returns the bound of the same direction at another value.
    fn at(self, value: f64) -> Bound {
        match self {
            Bound::AtMost(_) => Bound::AtMost(value),
            Bound::AtLeast(_) => Bound::AtLeast(value),
        }
    }

    /// Describes the bound for messages.
    fn words(self) -> String {
        match self {
            Bound::AtMost(limit) => format!("at most {limit}"),
            Bound::AtLeast(limit) => format!("at least {limit}"),
        }
    }
}

/// All limits.
// table
const LIMITS: &[Limit] = &[
    Limit {
        figure: Figure::Openings,
        bound: Bound::AtMost(5.0),
        units: &[],
    },
    Limit {
        figure: Figure::Pronouns,
        bound: Bound::AtMost(70.0),
        units: &[],
    },
    Limit {
        figure: Figure::Field,
        bound: Bound::AtLeast(4.0),
        units: &[
            "crates/gradus-ad",
            "crates/gradus-analysis",
            "crates/gradus-par",
            "crates/gradus-simplify",
            "crates/gradus-raise",
            "crates/gradus-gpu",
            "crates/gradus-edit",
        ],
    },
];

/// Pages with fewer words have no meaningful rate: one pronoun more or less decides.
const WORDS_MIN: usize = 50;

/// Figure of one unit that is beyond the limit and may not become worse.
#[derive(Clone, Copy)]
pub struct Exception {
    /// Crate folder or page.
    pub unit: &'static str,
    /// Figure.
    pub figure: Figure,
    /// Present value, rounded to one decimal.
    pub value: f64,
}

/// Returns the units beyond a limit and the exceptions without a need.
pub fn check(units: &BTreeMap<String, Counts>, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (unit, counts) in units {
        for limit in limits_of(unit, counts) {
            let value = limit.figure.of(counts);
            let bound = exceptions
                .iter()
                .find(|e| e.unit == unit && e.figure == limit.figure)
                .map_or(limit.bound, |e| limit.bound.at(e.value));
            if !bound.holds(value) && !limit.bound.holds(value) {
                let message = format!(
                    "{value:.1} {}; allowed: {}",
                    limit.figure.words(),
                    bound.words()
                );
                findings.push(Finding::new(unit, 1, message));
            }
        }
    }
    for exception in exceptions.iter().filter(|e| !is_needed(e, units)) {
        let message = format!(
            "the exception of {} for {:?} is no longer needed: delete its row",
            exception.unit, exception.figure
        );
        findings.push(Finding::new(
            "xtask/src/tidy/prose/exceptions.rs",
            1,
            message,
        ));
    }
    findings
}

/// Returns the limits that apply to a unit.
fn limits_of(unit: &str, counts: &Counts) -> impl Iterator<Item = &'static Limit> {
    let applies = |units: &[&str]| units.is_empty() || units.contains(&unit);
    let is_counted = counts.words >= WORDS_MIN;
    let chosen: Vec<&Limit> = LIMITS
        .iter()
        .filter(|limit| applies(limit.units))
        .filter(|limit| is_counted || limit.figure == Figure::Openings)
        .collect();
    chosen.into_iter()
}

/// Returns whether the unit of an exception exists and is beyond its limit.
fn is_needed(exception: &Exception, units: &BTreeMap<String, Counts>) -> bool {
    units.get(exception.unit).is_some_and(|counts| {
        limits_of(exception.unit, counts).any(|limit| {
            limit.figure == exception.figure && !limit.bound.holds(limit.figure.of(counts))
        })
    })
}

/// Returns a line with the three figures of each unit.
pub fn figures(units: &BTreeMap<String, Counts>) -> Vec<String> {
    let line = |(unit, counts): (&String, &Counts)| {
        format!(
            "{unit}: openings {:.1} % of {} sentences, pronoun-like {:.1}, field {:.1} per 1,000 of {} words",
            Figure::Openings.of(counts),
            counts.sentences,
            Figure::Pronouns.of(counts),
            Figure::Field.of(counts),
            counts.words
        )
    };
    units.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Counts = Counts {
        sentences: 100,
        openings: 5,
        words: 1000,
        pronouns: 70,
        field: 4,
    };

    fn found(unit: &str, counts: Counts, exceptions: &[Exception]) -> Vec<String> {
        let units = BTreeMap::from([(unit.to_owned(), counts)]);
        check(&units, exceptions)
            .into_iter()
            .map(|f| f.message)
            .collect()
    }

    #[test]
    fn figures_at_the_limits_pass() {
        assert!(found("crates/gradus-ad", GOOD, &[]).is_empty());
    }

    #[test]
    fn each_figure_beyond_its_limit_is_flagged() {
        for bad in [
            Counts {
                openings: 6,
                ..GOOD
            },
            Counts {
                pronouns: 71,
                ..GOOD
            },
            Counts { field: 3, ..GOOD },
        ] {
            assert_eq!(found("crates/gradus-ad", bad, &[]).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn field_terms_are_demanded_of_seven_crates_only() {
        let few = Counts { field: 0, ..GOOD };
        assert!(found("docs/guide.md", few, &[]).is_empty());
        assert!(found("crates/gradus-cli", few, &[]).is_empty());
        assert_eq!(found("crates/gradus-gpu", few, &[]).len(), 1);
    }

    #[test]
    fn short_pages_have_no_rates_and_decisions_have_limits() {
        let short = Counts {
            sentences: 3,
            openings: 0,
            words: 30,
            pronouns: 5,
            field: 0,
        };
        assert!(found("docs/x.md", short, &[]).is_empty());
        let bad = Counts {
            openings: 50,
            ..GOOD
        };
        assert_eq!(found("docs/decisions/0007-x.md", bad, &[]).len(), 1);
        assert!(found("docs/decisions/0007-x.md", GOOD, &[]).is_empty());
    }

    #[test]
    fn an_exception_admits_its_figure_and_no_worse_one() {
        let exception = Exception {
            unit: "docs/x.md",
            figure: Figure::Pronouns,
            value: 90.0,
        };
        let bad = |pronouns| Counts { pronouns, ..GOOD };
        assert!(found("docs/x.md", bad(90), &[exception]).is_empty());
        assert_eq!(found("docs/x.md", bad(91), &[exception]).len(), 1);
    }

    #[test]
    fn an_exception_without_a_need_is_flagged() {
        let exception = Exception {
            unit: "docs/x.md",
            figure: Figure::Pronouns,
            value: 90.0,
        };
        let all = found("docs/x.md", GOOD, &[exception]);
        assert_eq!(all.len(), 1);
        assert!(all[0].contains("no longer needed"));
        let gone = found("docs/y.md", GOOD, &[exception]);
        assert_eq!(gone.len(), 1);
    }
}
