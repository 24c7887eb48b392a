//! When a parallel loop forks, and in what form, as lowering decided it: data for `--par-report`.

use crate::Options;
use crate::work::Work;
use gradus_ir::LocId;

/// When a parallel loop forks, and in what form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Where the loop stands.
    pub loc: Option<LocId>,
    /// From what size on.
    pub size: Size,
    /// Whether it was interchanged with the loop inside, so that columns run side by side.
    pub interchanged: bool,
}

/// How the size of a loop's work decides whether it forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// It is too small for a fork, always.
    Never,
    /// It is large enough, always.
    Always,
    /// From so many iterations on.
    From {
        /// While a worker is awake.
        awake: u64,
        /// While all sleep.
        asleep: u64,
    },
    /// What an iteration takes is estimated when the loop begins.
    Estimated,
}

impl Size {
    /// The decision about a loop of `trips` iterations, where these are known, and of the work of one.
    pub(crate) fn of(work: &Work, trips: Option<u64>, reduces: bool, options: &Options) -> Size {
        if !work.terms.is_empty() {
            return Size::Estimated;
        }
        let from = |limit: u64| limit / work.fixed.max(1) + 1;
        let asleep = from(options.small_work);
        let awake = match reduces {
            true => asleep,
            false => from(options.small_work.min(options.small_work_awake)),
        };
        Size::from(trips, awake, asleep)
    }

    /// The decision about a loop of `trips` iterations, where these are known, that forks from so many on.
    pub(crate) fn from(trips: Option<u64>, awake: u64, asleep: u64) -> Size {
        match trips {
            Some(trips) if trips < awake => Size::Never,
            Some(trips) if trips >= asleep => Size::Always,
            _ => Size::From { awake, asleep },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_work_of_an_iteration() {
        let options = Options {
            small_work: 1000,
            small_work_awake: 100,
            ..Options::default()
        };
        let work = Work {
            fixed: 10,
            ..Work::default()
        };
        let size = |trips, reduces| Size::of(&work, trips, reduces, &options);
        assert_eq!(size(Some(10), false), Size::Never);
        let (awake, asleep) = (11, 101);
        assert_eq!(size(Some(11), false), Size::From { awake, asleep });
        assert_eq!(size(Some(101), false), Size::Always);
        assert_eq!(size(None, false), Size::From { awake, asleep });
        assert_eq!(size(Some(11), true), Size::Never);
        let unknown = Work {
            terms: vec![(Vec::new(), 3)],
            ..Work::default()
        };
        assert_eq!(
            Size::of(&unknown, Some(1), false, &options),
            Size::Estimated
        );
    }
}
