//! The fork decision of a parallel loop, as made by lowering: data for `--par-report`.

use crate::Options;
use crate::cost::model::IterationWork;
use gradus_ir::LocId;

/// The size from which a parallel loop forks, and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkDecision {
    /// The location of the loop.
    pub loc: Option<LocId>,
    /// The size from which the loop forks.
    pub size: ForkThreshold,
    /// True if the loop was interchanged with its inner loop, see column interchange.
    pub interchanged: bool,
}

/// The dependence of the fork decision on the loop's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkThreshold {
    /// Always too small for a fork.
    Never,
    /// Always large enough for a fork.
    Always,
    /// A minimum trip count.
    From {
        /// While a worker is awake.
        awake: u64,
        /// While all workers sleep.
        asleep: u64,
    },
    /// The cost of an iteration is estimated at loop entry.
    Estimated,
}

impl ForkThreshold {
    /// Returns the decision for a loop with `work` per iteration and `trips` iterations, if known.
    pub(crate) fn of(
        work: &IterationWork,
        trips: Option<u64>,
        reduces: bool,
        options: &Options,
    ) -> ForkThreshold {
        if !work.terms.is_empty() {
            return ForkThreshold::Estimated;
        }
        let from = |limit: u64| limit / work.fixed.max(1) + 1;
        let asleep = from(options.small_work);
        let awake = match reduces {
            true => asleep,
            false => from(options.small_work.min(options.small_work_awake)),
        };
        ForkThreshold::from(trips, awake, asleep)
    }

    /// Returns the decision for a loop that forks from `awake` or `asleep` iterations, given the trip count if
    /// known.
    pub(crate) fn from(trips: Option<u64>, awake: u64, asleep: u64) -> ForkThreshold {
        match trips {
            Some(trips) if trips < awake => ForkThreshold::Never,
            Some(trips) if trips >= asleep => ForkThreshold::Always,
            _ => ForkThreshold::From { awake, asleep },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_follows_iteration_work() {
        let options = Options {
            small_work: 1000,
            small_work_awake: 100,
            ..Options::default()
        };
        let work = IterationWork {
            fixed: 10,
            ..IterationWork::default()
        };
        let size = |trips, reduces| ForkThreshold::of(&work, trips, reduces, &options);
        assert_eq!(size(Some(10), false), ForkThreshold::Never);
        let (awake, asleep) = (11, 101);
        assert_eq!(size(Some(11), false), ForkThreshold::From { awake, asleep });
        assert_eq!(size(Some(101), false), ForkThreshold::Always);
        assert_eq!(size(None, false), ForkThreshold::From { awake, asleep });
        assert_eq!(size(Some(11), true), ForkThreshold::Never);
        let unknown = IterationWork {
            terms: vec![(Vec::new(), 3)],
            ..IterationWork::default()
        };
        assert_eq!(
            ForkThreshold::of(&unknown, Some(1), false, &options),
            ForkThreshold::Estimated
        );
    }
}
