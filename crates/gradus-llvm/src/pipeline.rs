//! The fixed list of LLVM pass pipelines; no other pipeline is ever run.
//!
//! Some combinations of passes crash LLVM (for example `unify-loop-exits` before `lower-switch`), so
//! pipelines are not composed at run time. The early pipelines bring the program into a form suitable for
//! import and differentiation; the late pipelines are LLVM's own `-O` levels, run after export.
use crate::host::attributes::attribute_kind;
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::host::target::{OptLevel, TargetMachine};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::transforms::pass_builder::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex};

/// A pipeline of the fixed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// Before differentiation of serial code: loop-invariant calls are hoisted before inlining, small
    /// constant loops are unrolled, nothing is peeled or vectorised.
    EarlySerial,
    /// Before differentiation of code that calls OpenMP's runtime. Unlike [`Pipeline::EarlySerial`],
    /// runtime calls are never duplicated, and no load is moved to the previous iteration.
    EarlyOpenMp,
    /// The minimum for import: before raising parallel code, where calls must stay calls, and before a mere
    /// round trip through the IR, after which the user's own pipeline runs.
    EarlyPlain,
    /// Before raising the launches of a merged CUDA source: inlines device functions that query their
    /// thread index into their kernels.
    EarlyKernels,
    /// Before all others, on a whole Rust program that rustc has not optimised: callees are simplified before they are
    /// inlined, since Rust's layers of small functions otherwise exceed the inliner's threshold, and copies of
    /// structures become copies of members.
    EarlyRust,
    /// LLVM's own pipeline of a level, after export.
    Late(OptLevel),
}

// Reasons for the choice and order of passes:
//
// - `loop-unroll-full` would also peel, so `loop-unroll` with options is used.
// - `simplifycfg` also runs before `sroa`: for many exits to one block it is quadratic once the block has
//   phis.
// - `dse` runs before `sroa` after inlining: libstdc++ sets the first byte of a union before it constructs
//   an element there. `sroa` would make a variable of that byte and split the element's first number.
// - `lower-constant-intrinsics` resolves `__builtin_constant_p`: libstdc++ reads the element count from a
//   list's head if the node is known to be the head, and `gvn` would otherwise forward a node's value to
//   that read.
// - `correlated-propagation` records non-negative operands and non-wrapping sums from conditions. Proofs
//   that addresses differ require these flags.
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
// Load PRE would carry a loaded value from one iteration to the next, and thus add a loop-carried
// dependence.
const EARLY_OPENMP: &str = early_from_unrolling!("gvn<no-load-pre>");
// `ipsccp` propagates arguments that all calls of a function share: outlined tasks would pass them through
// memory.
const EARLY_PLAIN: &str =
    "inferattrs,function(simplifycfg,sroa,early-cse,simplifycfg),ipsccp,cgscc(function-attrs)";
// Nothing is unrolled: a barrier in a loop stays a single barrier.
const EARLY_KERNELS: &str = "\
    function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,sroa,\
    early-cse<memssa>,simplifycfg),cgscc(function-attrs)";

// `memcpyopt` forwards copies of moved values: `mem::swap` and `mem::replace` copy bytes without a type.
const EARLY_RUST: &str = "globaldce,inferattrs,always-inline,\
    function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>),\
    cgscc(devirt<4>(inline,function-attrs,function(sroa,early-cse<memssa>,simplifycfg,\
    instcombine<no-verify-fixpoint>,memcpyopt,sroa,instcombine<no-verify-fixpoint>))),globaldce";

/// `simplifycfg` before the differentiation of a Rust program, where `sqrt` is an intrinsic: `if x < 0.0 { Err(..) }
/// else { Ok(x.sqrt()) }` would otherwise compute the root in both cases, with an adjoint that is not a number.
const NO_SPECULATION: &str = "simplifycfg<no-speculate-blocks>";

impl Pipeline {
    /// Returns the pipeline in LLVM's notation, without its common prefix ([`EARLY_UNTIL_UNROLLING`]).
    fn text(self) -> &'static str {
        match self {
            Pipeline::EarlySerial => EARLY_SERIAL,
            Pipeline::EarlyOpenMp => EARLY_OPENMP,
            Pipeline::EarlyPlain => EARLY_PLAIN,
            Pipeline::EarlyKernels => EARLY_KERNELS,
            Pipeline::EarlyRust => EARLY_RUST,
            Pipeline::Late(OptLevel::O0) => "default<O0>",
            Pipeline::Late(OptLevel::O1) => "default<O1>",
            Pipeline::Late(OptLevel::O2) => "default<O2>",
            Pipeline::Late(OptLevel::O3) => "default<O3>",
        }
    }
}

impl Host {
    /// Runs a pipeline over the whole module. Earlier units are outdated afterwards.
    ///
    /// # Errors
    /// A triple without a code generator in LLVM, or a failing pass.
    pub fn run(&mut self, pipeline: Pipeline) -> Result<(), Diagnostic> {
        self.invalidate_units();
        if !matches!(pipeline, Pipeline::Late(_)) {
            self.strip_o0_attributes();
            self.mark_debug_regions();
        }
        let level = match pipeline {
            Pipeline::Late(level) => level,
            _ => OptLevel::O2,
        };
        // A failure returns before the temporary attributes are set.
        let machine = TargetMachine::for_module(self, level)?;
        let before_derivatives = matches!(pipeline, Pipeline::EarlySerial | Pipeline::EarlyOpenMp);
        let mut not_duplicated = Vec::new();
        if before_derivatives {
            self.expand_x86_intrinsics();
            self.raise_inlining();
            not_duplicated = self.forbid_openmp_duplicates();
        }
        let vectorise = matches!(pipeline, Pipeline::Late(OptLevel::O2 | OptLevel::O3));
        if pipeline == Pipeline::EarlyPlain
            && let Some(others) = self.drop_alwaysinline_elsewhere()
        {
            let done = self.run_text("inferattrs,always-inline", &machine, vectorise);
            self.restore_alwaysinline(&others);
            done?;
        }
        let done = (|| {
            if before_derivatives {
                self.run_text(EARLY_UNTIL_UNROLLING, &machine, vectorise)?;
                self.offset_rounded_addresses();
                if self.local_loops {
                    self.request_unrolling();
                }
            }
            if pipeline == Pipeline::EarlyKernels {
                let first = "inferattrs,always-inline,function(sroa)";
                self.run_text(first, &machine, vectorise)?;
                self.exits_to_returns()?;
                // Address-based optimisations then see the 32-bit distances.
                self.wrap_shared_addresses();
            }
            self.run_text(pipeline.text(), &machine, vectorise)?;
            if before_derivatives {
                self.expand_integer_addresses();
            }
            if before_derivatives || pipeline == Pipeline::EarlyKernels {
                self.wrap_shared_addresses();
            }
            Ok(())
        })();
        if before_derivatives {
            self.remove_unroll_requests();
            self.allow_duplicates(&not_duplicated);
            self.reset_inlining();
        }
        done
    }

    fn run_text(
        &self,
        text: &str,
        machine: &TargetMachine,
        vectorise: bool,
    ) -> Result<(), Diagnostic> {
        let text = match self.whole_program && !vectorise {
            true => c_string(&text.replace("simplifycfg", NO_SPECULATION)),
            false => c_string(text),
        };
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
            Some(text) => Err(self
                .error_with_messages(Code::ToolFailed, &format!("LLVM's passes failed: {text}"))),
            None => Ok(()),
        }
    }

    /// Removes `optnone` from every function, and the `noinline` that `-O0` adds with it.
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
}

const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;
