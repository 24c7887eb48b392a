//! Runs LLVM's passes before the import.
//!
//! [`PinnedFunctions`] keeps functions visible during the passes and undoes the changes afterwards.

use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_analysis::Stage;
use gradus_llvm::host::symbol_preservation::Exposed;
use gradus_llvm::{Host, PinnedCalls, Pipeline};
use std::ops::{Deref, DerefMut};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "pre-ad-llvm",
    stage: Stage::Host,
    switch: None,
    about: "runs LLVM's passes before the import",
    run: StageRun::Step,
};

/// Runs LLVM's pipeline before differentiation, unless the request skips it.
pub(crate) fn optimize_before_ad(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if run.request.options.skip_early {
        return Ok(());
    }
    host.set_tape_noinline(true);
    host.unroll_local_loops(!run.is_off("unroll-local-arrays"));
    let pipeline = match run.request.options.parallel {
        true => Pipeline::EarlyOpenMp,
        false => Pipeline::EarlySerial,
    };
    optimize(run, host, pipeline)
}

/// Runs LLVM's pipeline before raising, without inlining.
pub(crate) fn optimize_before_raising(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    let pipeline = match run.request.options.device {
        Some(_) => Pipeline::EarlyKernels,
        None => Pipeline::EarlyPlain,
    };
    optimize(run, host, pipeline)
}

/// Runs one of LLVM's pipelines before the import.
pub(crate) fn optimize(run: &mut Run<'_>, host: &mut Host, pipeline: Pipeline) -> Result<(), Stop> {
    run.pass(&PASS, |run| {
        run.value_or_stop(host.run(pipeline))?;
        run.after_host(&PASS, host)
    })
}

/// A change to a function of the host that lasts as long as [`PinnedFunctions`].
enum Pin {
    Exposed(Exposed),
    Calls(PinnedCalls),
}

/// Functions that LLVM's passes keep, with the host. The changes are undone when the value is dropped.
pub(crate) struct PinnedFunctions<'h> {
    host: &'h mut Host,
    pins: Vec<Pin>,
}

impl<'h> PinnedFunctions<'h> {
    /// Takes the host without any change.
    pub(crate) fn new(host: &'h mut Host) -> Self {
        let pins = Vec::new();
        PinnedFunctions { host, pins }
    }

    /// Makes functions external: no pass drops or specialises them.
    pub(crate) fn expose(&mut self, names: &[String]) {
        let exposed = self.host.expose(names);
        self.pins.push(Pin::Exposed(exposed));
    }

    /// Keeps calls of functions: no pass inlines or drops them.
    pub(crate) fn keep_calls(&mut self, names: &[String]) {
        let calls = self.host.hold(names);
        self.pins.push(Pin::Calls(calls));
    }
}

impl Deref for PinnedFunctions<'_> {
    type Target = Host;
    fn deref(&self) -> &Host {
        self.host
    }
}

impl DerefMut for PinnedFunctions<'_> {
    fn deref_mut(&mut self) -> &mut Host {
        self.host
    }
}

impl Drop for PinnedFunctions<'_> {
    /// Undoes the changes, the last one first.
    fn drop(&mut self) {
        while let Some(pin) = self.pins.pop() {
            match pin {
                Pin::Exposed(exposed) => self.host.restore(exposed),
                Pin::Calls(calls) => self.host.release(calls),
            }
        }
    }
}
