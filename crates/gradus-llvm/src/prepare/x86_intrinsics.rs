//! Expands x86 intrinsics and simple inline assembly into generic LLVM instructions.
//!
//! Vectorised source code uses target intrinsics, and inline assembly if its authors distrust the
//! compiler's choice: Eigen's multiply-adds, minima and maxima, and comments in its kernels. Analyses treat
//! all of these as opaque; even a comment may write any memory. In differentiated functions the early
//! pipeline starts by replacing them with operations of equal results:
//!
//! - horizontal sums and differences (`hadd`, `hsub`), and alternating ones (`addsub`, `fmaddsub`):
//!   shuffles;
//! - `min` and `max`, which return their second operand for unordered operands: a comparison and a select;
//! - `blendv`, which selects by sign bits; `round` with a constant mode;
//! - assembly of `vfmadd231`, `min` or `max` with register operands only: the same; assembly of a comment
//!   without operands and without a memory clobber: nothing.
//!
//! Everything else stays unchanged.

use crate::host::calls::{assembly, calls_in};
use crate::host::ffi::*;
use crate::host::module::Host;
use gradus_ir::mutant::{Mutant, is_planted};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMInlineAsmDialect, LLVMRealPredicate, LLVMTypeKind};

/// The replacement of a call.
enum Replacement {
    Nothing,
    Value(LLVMValueRef),
}

impl Host {
    /// Replaces known x86 intrinsics and assembly in the functions that will be differentiated.
    pub(crate) fn expand_x86_intrinsics(&mut self) {
        if !self.triple().starts_with("x86_64") {
            return;
        }
        for f in self.reached_by_differentiated() {
            unsafe {
                for call in calls_in(f) {
                    self.expand_call(call);
                }
            }
        }
    }

    unsafe fn expand_call(&self, call: LLVMValueRef) {
        unsafe {
            let callee = LLVMGetCalledValue(call);
            let words = X86Expander {
                ctx: self.ctx,
                module: self.module,
                builder: LLVMCreateBuilderInContext(self.ctx),
            };
            LLVMPositionBuilderBefore(words.builder, call);
            let args: Vec<LLVMValueRef> = (0..LLVMGetNumArgOperands(call))
                .map(|number| LLVMGetOperand(call, number))
                .collect();
            let instead = match LLVMIsAInlineAsm(callee).is_null() {
                true => words
                    .intrinsic(&name_of(callee), &args)
                    .map(Replacement::Value),
                false => words.assembly(callee, LLVMTypeOf(call), &args),
            };
            LLVMDisposeBuilder(words.builder);
            if let Some(Replacement::Value(value)) = instead
                && !LLVMGetFirstUse(call).is_null()
            {
                LLVMReplaceAllUsesWith(call, value);
            }
            if instead.is_some() {
                LLVMInstructionEraseFromParent(call);
            }
        }
    }
}

/// Emits LLVM instructions before a call.
struct X86Expander {
    ctx: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
}

impl X86Expander {
    /// Emits the equivalent of an x86 intrinsic; `None` for others.
    unsafe fn intrinsic(&self, name: &str, args: &[LLVMValueRef]) -> Option<LLVMValueRef> {
        let (set, rest) = name.strip_prefix("llvm.x86.")?.split_once('.')?;
        let (what, format) = rest.split_once('.').unwrap_or((rest, ""));
        let scalar = matches!(format, "ss" | "sd");
        let packed = matches!(
            format,
            "ps" | "pd" | "ps.256" | "pd.256" | "ps.512" | "pd.512"
        );
        unsafe {
            match (set, what, args) {
                ("sse3" | "avx", "hadd", &[a, b]) if packed => Some(self.horizontal(a, b, true)),
                ("sse3" | "avx", "hsub", &[a, b]) if packed => Some(self.horizontal(a, b, false)),
                ("sse3" | "avx", "addsub", &[a, b]) if packed => {
                    let less = LLVMBuildFSub(self.builder, a, b, NO_NAME);
                    let more = LLVMBuildFAdd(self.builder, a, b, NO_NAME);
                    Some(self.alternate_elements(less, more))
                }
                ("fma", "vfmaddsub", &[a, b, c]) if packed => {
                    let minus = LLVMBuildFNeg(self.builder, c, NO_NAME);
                    let c = self.alternate_elements(minus, c);
                    Some(self.elementwise_intrinsic("llvm.fma", &[a, b, c]))
                }
                ("sse" | "sse2" | "avx", "min" | "max", &[a, b]) if packed => {
                    Some(self.min_or_max(what == "min", a, b))
                }
                ("sse" | "sse2", "min" | "max", &[a, b]) if scalar => {
                    let extreme = self.min_or_max(what == "min", a, b);
                    let count = lanes(a);
                    let mask: Vec<u32> = (0..count)
                        .map(
                            |lane| match lane == 0 || is_planted(Mutant::ScalarMinInAllLanes) {
                                true => lane,
                                false => count + lane,
                            },
                        )
                        .collect();
                    Some(self.shuffle(extreme, a, &mask))
                }
                ("avx512", "min" | "max", &[a, b, mode])
                    if packed && constant(mode) == Some(CURRENT_ROUNDING_MODE) =>
                {
                    Some(self.min_or_max(what == "min", a, b))
                }
                ("sse41", "blendvpd" | "blendvps", &[a, b, by]) => {
                    Some(self.blend_by_sign(a, b, by))
                }
                ("avx", "blendv", &[a, b, by]) if packed => Some(self.blend_by_sign(a, b, by)),
                ("sse41" | "avx", "round", &[a, mode]) if packed => {
                    let name = match constant(mode)? & 7 {
                        0 => "llvm.roundeven",
                        1 => "llvm.floor",
                        2 => "llvm.ceil",
                        3 => "llvm.trunc",
                        _ => "llvm.rint",
                    };
                    Some(self.elementwise_intrinsic(name, &[a]))
                }
                _ => None,
            }
        }
    }

    /// Emits the equivalent of inline assembly; `None` if unknown.
    unsafe fn assembly(
        &self,
        callee: LLVMValueRef,
        result: LLVMTypeRef,
        args: &[LLVMValueRef],
    ) -> Option<Replacement> {
        unsafe {
            let text = assembly(callee);
            let text = text.trim();
            let dialect = LLVMGetInlineAsmDialect(callee);
            if dialect != LLVMInlineAsmDialect::LLVMInlineAsmDialectATT {
                return None;
            }
            let (operands, others) = constraints(callee);
            let comment = text.starts_with('#') && !text.contains(['\n', ';']);
            if (text.is_empty() || comment) && args.is_empty() && operands.is_empty() {
                let calm = others.iter().all(|other| other != MEMORY_CLOBBER);
                return calm.then_some(Replacement::Nothing);
            }
            let registers = |list: &[&str]| {
                let same = |(wanted, found): (&&str, &String)| match *wanted {
                    "0" => found == "0",
                    other => *found == other.replace('r', "x") || *found == other.replace('r', "v"),
                };
                list.len() == operands.len() && list.iter().zip(&operands).all(same)
            };
            let alike = args.iter().all(|arg| LLVMTypeOf(*arg) == result);
            let letter = lane_letter(result).filter(|_| alike)?;
            let (word, named) = text.split_once(' ').unwrap_or((text, ""));
            let named: String = named.split_whitespace().collect();
            let stem = word.strip_suffix(&format!("p{letter}"))?;
            let value = match (stem, named.as_str(), args) {
                ("vfmadd231", "$1,$2,$0", &[a, b, c]) if registers(&["=r", "r", "r", "0"]) => {
                    self.elementwise_intrinsic("llvm.fma", &[a, b, c])
                }
                // In AT&T syntax the first operand is the instruction's second source.
                ("vmin" | "vmax", "$1,$2,$0", &[a, b]) if registers(&["=r", "r", "r"]) => {
                    self.min_or_max(stem == "vmin", b, a)
                }
                ("min" | "max", "$1,$0", &[a, b]) if registers(&["=r", "r", "0"]) => {
                    self.min_or_max(stem == "min", b, a)
                }
                _ => return None,
            };
            Some(Replacement::Value(value))
        }
    }

    /// Emits, in each 128-bit lane, the sums or differences of `a`'s adjacent elements, then those of
    /// `b`'s.
    unsafe fn horizontal(&self, a: LLVMValueRef, b: LLVMValueRef, sum: bool) -> LLVMValueRef {
        unsafe {
            let count = lanes(a);
            let part = match lane_letter(LLVMTypeOf(a)) {
                _ if is_planted(Mutant::AdjacentAcrossHalves) => count,
                Some('d') => 2,
                _ => 4,
            };
            let pick = |second: u32| -> Vec<u32> {
                let of_part = |start: u32| {
                    let from = move |from: u32| {
                        (0..part / 2).map(move |pair| from + start + 2 * pair + second)
                    };
                    from(0).chain(from(count))
                };
                (0..count / part).flat_map(|n| of_part(n * part)).collect()
            };
            let (first, second) = (self.shuffle(a, b, &pick(0)), self.shuffle(a, b, &pick(1)));
            match sum {
                true => LLVMBuildFAdd(self.builder, first, second, NO_NAME),
                false => LLVMBuildFSub(self.builder, first, second, NO_NAME),
            }
        }
    }

    /// Emits a vector of the even elements of one vector and the odd elements of another.
    unsafe fn alternate_elements(&self, even: LLVMValueRef, odd: LLVMValueRef) -> LLVMValueRef {
        unsafe {
            let count = lanes(even);
            let second = u32::from(!is_planted(Mutant::EvenOddLanesSwapped));
            let mask: Vec<u32> = (0..count)
                .map(|lane| lane + u32::from(lane % 2 == second) * count)
                .collect();
            self.shuffle(even, odd, &mask)
        }
    }

    /// Emits `a` if `a` is less (or greater) than `b`, otherwise `b`.
    unsafe fn min_or_max(&self, least: bool, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        let order = match least {
            true => LLVMRealPredicate::LLVMRealOLT,
            false => LLVMRealPredicate::LLVMRealOGT,
        };
        unsafe {
            let first = LLVMBuildFCmp(self.builder, order, a, b, NO_NAME);
            LLVMBuildSelect(self.builder, first, a, b, NO_NAME)
        }
    }

    /// Emits `b` if the sign bit of `by` is set, otherwise `a`.
    unsafe fn blend_by_sign(
        &self,
        a: LLVMValueRef,
        b: LLVMValueRef,
        by: LLVMValueRef,
    ) -> LLVMValueRef {
        unsafe {
            let bits = match lane_letter(LLVMTypeOf(by)) {
                Some('d') => 64,
                _ => 32,
            };
            let int = LLVMIntTypeInContext(self.ctx, bits);
            let ty = LLVMVectorType(int, lanes(by));
            let word = LLVMBuildBitCast(self.builder, by, ty, NO_NAME);
            let less = llvm_sys::LLVMIntPredicate::LLVMIntSLT;
            let set = LLVMBuildICmp(self.builder, less, word, LLVMConstNull(ty), NO_NAME);
            let (a, b) = match is_planted(Mutant::SignBlendSwapped) {
                true => (b, a),
                false => (a, b),
            };
            LLVMBuildSelect(self.builder, set, b, a, NO_NAME)
        }
    }

    unsafe fn shuffle(&self, a: LLVMValueRef, b: LLVMValueRef, mask: &[u32]) -> LLVMValueRef {
        unsafe {
            let int = LLVMInt32TypeInContext(self.ctx);
            let mut mask: Vec<LLVMValueRef> = (mask.iter())
                .map(|lane| LLVMConstInt(int, u64::from(*lane), 0))
                .collect();
            let mask = LLVMConstVector(mask.as_mut_ptr(), mask.len() as u32);
            LLVMBuildShuffleVector(self.builder, a, b, mask, NO_NAME)
        }
    }

    /// Emits a call of an elementwise intrinsic.
    unsafe fn elementwise_intrinsic(&self, name: &str, args: &[LLVMValueRef]) -> LLVMValueRef {
        unsafe {
            let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let mut of = [LLVMTypeOf(args[0])];
            let f = LLVMGetIntrinsicDeclaration(self.module, id, of.as_mut_ptr(), 1);
            let ty = LLVMGlobalGetValueType(f);
            let mut args = args.to_vec();
            let count = args.len() as u32;
            LLVMBuildCall2(self.builder, ty, f, args.as_mut_ptr(), count, NO_NAME)
        }
    }
}

/// The rounding operand for the present rounding mode.
const CURRENT_ROUNDING_MODE: u64 = 4;
/// The memory clobber of inline assembly.
const MEMORY_CLOBBER: &str = "~{memory}";

/// Returns the operand constraints and the clobbers of inline assembly.
unsafe fn constraints(callee: LLVMValueRef) -> (Vec<String>, Vec<String>) {
    let text = unsafe {
        let mut len = 0;
        let start = LLVMGetInlineAsmConstraintString(callee, &mut len);
        text_of(start, len)
    };
    let all = text.split(',').filter(|c| !c.is_empty()).map(String::from);
    all.partition(|constraint| !constraint.starts_with('~'))
}

/// Returns the suffix letter of instructions for a vector type: double or single precision.
unsafe fn lane_letter(ty: LLVMTypeRef) -> Option<char> {
    unsafe {
        if LLVMGetTypeKind(ty) != LLVMTypeKind::LLVMVectorTypeKind {
            return None;
        }
        match LLVMGetTypeKind(LLVMGetElementType(ty)) {
            LLVMTypeKind::LLVMDoubleTypeKind => Some('d'),
            LLVMTypeKind::LLVMFloatTypeKind => Some('s'),
            _ => None,
        }
    }
}

unsafe fn lanes(value: LLVMValueRef) -> u32 {
    unsafe { LLVMGetVectorSize(LLVMTypeOf(value)) }
}

/// Returns the value of a constant integer.
unsafe fn constant(value: LLVMValueRef) -> Option<u64> {
    unsafe {
        let known = !LLVMIsAConstantInt(value).is_null();
        known.then(|| LLVMConstIntGetZExtValue(value))
    }
}
