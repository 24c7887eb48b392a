//! The fixed list of LLVM pass pipelines; no other pipeline is ever run.
//!
//! Some combinations of passes crash LLVM (`unify-loop-exits` before `lower-switch` for one), so passes
//! are not put together at run time. The early pipelines bring a closure into the shape that import and
//! differentiation want; the late ones are LLVM's own `-O` levels, run on what export left.
use crate::ffi::*;
use crate::host::Host;
use crate::target::TargetMachine;
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::transforms::pass_builder::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex};

/// A level of LLVM's own optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptLevel {
    /// `-O0`
    O0,
    /// `-O1`
    O1,
    /// `-O2`
    O2,
    /// `-O3`
    O3,
}

/// A pipeline of the fixed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// Before differentiation of a serial closure: calls are hoisted before anything is inlined, small
    /// constant loops are unrolled, nothing is peeled or vectorised.
    EarlySerial,
    /// Before differentiation of a closure that calls OpenMP's run time: as [`Pipeline::EarlySerial`],
    /// but its calls stay one each, and nothing is read ahead for the next iteration.
    EarlyOpenMp,
    /// What import needs and no more: before raising a parallel closure, where calls must stay calls, and
    /// before code only goes through the language and back, where the user's own pipeline does the rest.
    EarlyPlain,
    /// Before raising the launches of a merged CUDA source: device functions that ask for their thread
    /// are in their kernels afterwards.
    EarlyKernels,
    /// LLVM's own pipeline of a level, after export.
    Late(OptLevel),
}

// `loop-unroll-full` would peel too. `simplifycfg` comes before `sroa`, too: of many exits to one place it
// is quadratic once that place has phis. `dse` comes before `sroa` once calls are inlined: of a union's first byte, which
// libstdc++ sets before it makes an element there, `sroa` would make a variable and cut the element's first number.
// `lower-constant-intrinsics` decides what is asked of constants: libstdc++ reads the number of elements from a list's head
// where it is known that it has the head, and `gvn` would take a node's number for it elsewhere.
// `correlated-propagation` writes down where conditions show that
// numbers are not negative and sums do not wrap, on which the proofs that addresses differ rest.
const EARLY_UNTIL_UNROLLING: &str = "inferattrs,\
    cgscc(function(simplifycfg,sroa,early-cse<memssa>,simplifycfg),function-attrs),\
    function(loop-simplify,lcssa,loop-mssa(loop-rotate,licm)),\
    cgscc(inline,function-attrs),\
    function(dse,sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,lower-constant-intrinsics,\
    loop-mssa(loop-rotate,licm),loop-simplify,lcssa,loop(indvars,loop-deletion),loop-simplify,lcssa)";
macro_rules! early_from_unrolling {
    ($gvn:literal) => {
        concat!(
            "function(loop-unroll<O2;no-partial;no-peeling;no-profile-peeling;no-runtime;no-upperbound>,\
             sroa,",
            $gvn,
            ",correlated-propagation,loop-mssa(licm),dse,instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa),\
             rpo-function-attrs"
        )
    };
}
const EARLY_SERIAL: &str = early_from_unrolling!("gvn");
// What one iteration reads for the next ties them together.
const EARLY_OPENMP: &str = early_from_unrolling!("gvn<no-load-pre>");
// What all calls of a function hand in alike stands in it (`ipsccp`): tasks, once they are functions of their
// own, hand it on through memory.
const EARLY_PLAIN: &str =
    "inferattrs,function(simplifycfg,sroa,early-cse,simplifycfg),ipsccp,cgscc(function-attrs)";
// Nothing is unrolled: a barrier in a loop stays one.
const EARLY_KERNELS: &str = "\
    function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,sroa,\
    early-cse<memssa>,simplifycfg),cgscc(function-attrs)";

impl Pipeline {
    /// The pipeline in LLVM's own notation, but for what comes before ([`EARLY_UNTIL_UNROLLING`]).
    fn text(self) -> &'static str {
        match self {
            Pipeline::EarlySerial => EARLY_SERIAL,
            Pipeline::EarlyOpenMp => EARLY_OPENMP,
            Pipeline::EarlyPlain => EARLY_PLAIN,
            Pipeline::EarlyKernels => EARLY_KERNELS,
            Pipeline::Late(OptLevel::O0) => "default<O0>",
            Pipeline::Late(OptLevel::O1) => "default<O1>",
            Pipeline::Late(OptLevel::O2) => "default<O2>",
            Pipeline::Late(OptLevel::O3) => "default<O3>",
        }
    }
}

impl Host {
    /// Runs a pipeline over the whole module. What was imported before is out of date afterwards.
    ///
    /// # Errors
    /// A triple that this LLVM cannot compile for, or a failing pass.
    pub fn run(&mut self, pipeline: Pipeline) -> Result<(), Diagnostic> {
        self.touch();
        if !matches!(pipeline, Pipeline::Late(_)) {
            self.strip_o0_attributes();
        }
        let before_derivatives = matches!(pipeline, Pipeline::EarlySerial | Pipeline::EarlyOpenMp);
        if before_derivatives {
            self.spell_out_instructions();
            self.raise_inlining();
            self.keep_parallel_calls_single(true);
        }
        let level = match pipeline {
            Pipeline::Late(level) => level,
            _ => OptLevel::O2,
        };
        let machine = TargetMachine::for_module(self, level)?;
        let vectorise = matches!(pipeline, Pipeline::Late(OptLevel::O2 | OptLevel::O3));
        if pipeline == Pipeline::EarlyPlain
            && let Some(others) = self.only_constructs_inlined()
        {
            let done = self.run_text("inferattrs,always-inline", &machine, vectorise);
            self.inlined_again(&others);
            done?;
        }
        let done = (|| {
            if before_derivatives {
                self.run_text(EARLY_UNTIL_UNROLLING, &machine, vectorise)?;
                self.offset_rounded_addresses();
                if self.local_loops {
                    self.ask_for_unrolling();
                }
            }
            if pipeline == Pipeline::EarlyKernels {
                let first = "inferattrs,always-inline,function(sroa)";
                self.run_text(first, &machine, vectorise)?;
                self.return_at_exits()?;
                // Passes that tell addresses apart see the 32-bit distances.
                self.wrap_shared_addresses();
            }
            self.run_text(pipeline.text(), &machine, vectorise)?;
            if before_derivatives {
                self.part_chosen_loads();
            }
            if before_derivatives || pipeline == Pipeline::EarlyKernels {
                self.wrap_shared_addresses();
            }
            Ok(())
        })();
        if before_derivatives {
            self.stop_asking_for_unrolling();
            self.keep_parallel_calls_single(false);
            self.lower_inlining();
        }
        done
    }

    fn run_text(
        &self,
        text: &str,
        machine: &TargetMachine,
        vectorise: bool,
    ) -> Result<(), Diagnostic> {
        let text = c_string(text);
        let error = unsafe {
            let options = LLVMCreatePassBuilderOptions();
            LLVMPassBuilderOptionsSetLoopVectorization(options, vectorise.into());
            LLVMPassBuilderOptionsSetSLPVectorization(options, vectorise.into());
            LLVMPassBuilderOptionsSetLoopInterleaving(options, vectorise.into());
            let error = take_error(LLVMRunPasses(
                self.module,
                text.as_ptr(),
                machine.raw,
                options,
            ));
            LLVMDisposePassBuilderOptions(options);
            error
        };
        match error {
            Some(text) => {
                Err(self.failure(Code::ToolFailed, &format!("LLVM's passes failed: {text}")))
            }
            None => Ok(()),
        }
    }

    /// Takes `optnone` off every function, and with it the `noinline` that only `-O0` put there.
    pub fn strip_o0_attributes(&mut self) {
        let optnone = attribute_kind("optnone");
        let noinline = attribute_kind("noinline");
        for f in self.functions() {
            unsafe {
                if LLVMGetEnumAttributeAtIndex(f, FUNCTION, optnone).is_null() {
                    continue;
                }
                LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, optnone);
                LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, noinline);
            }
        }
    }

    /// Every function of the module, in its order.
    pub(crate) fn functions(&self) -> Vec<LLVMValueRef> {
        let mut all = Vec::new();
        let mut f = unsafe { LLVMGetFirstFunction(self.module) };
        while !f.is_null() {
            all.push(f);
            f = unsafe { LLVMGetNextFunction(f) };
        }
        all
    }
}

const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;

/// LLVM's number of the attribute called `name`.
pub(crate) fn attribute_kind(name: &str) -> u32 {
    unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
}
