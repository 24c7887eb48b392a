//! Expands flang's numeric runtime functions `NORM2`, `MOD`, `MODULO` and `SPACING`.
//!
//! The algorithms are those of flang-rt 22. The norm is scaled by the largest magnitude seen, so that no
//! square overflows. The remainder is `fmod`, with the sign of the first operand or (`MODULO`) of the
//! second.

use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::runtime_library::{
    RuntimeReplacement, load_bounds_text, loop_nest_text,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Matches a norm of a whole double-precision array.
///
/// # Safety
/// `call` is a live call of `_FortranANorm2_8`.
pub(super) unsafe fn match_norm2(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        let rank = StoredMembers::in_variable(LLVMGetOperand(call, 0))?.rank()?;
        let of_all = LLVMIsNull(LLVMGetOperand(call, 3)) != 0;
        of_all.then_some(RuntimeReplacement::Norm { rank })
    }
}

/// Text of the norm. The scale and the scaled sum of squares are stack variables, which later passes
/// promote.
pub(super) fn norm_text(name: &str, rank: u64) -> String {
    let shape = load_bounds_text(rank, "of", 1, "n") + &load_bounds_text(rank, "of", 2, "f");
    let summed = loop_nest_text(rank, &[("from", "f")], |at| {
        let from = &at[0];
        format!(
            "  %x = load double, ptr {from}
  %size = call double @llvm.fabs.f64(double %x)
  %most = load double, ptr %scale
  %so.far = load double, ptr %sum
  %first = fcmp oeq double %most, 0.0
  br i1 %first, label %begin, label %further
begin:
  store double %size, ptr %scale
  br label %added
further:
  %larger = fcmp ogt double %size, %most
  br i1 %larger, label %rescale, label %add
rescale:
  %shrink = fdiv double %most, %size
  %shrink.2 = fmul double %shrink, %shrink
  %less = fmul double %so.far, %shrink.2
  %less.1 = fadd double %less, %shrink.2
  store double %less.1, ptr %sum
  store double %size, ptr %scale
  br label %added
add:
  %part = fdiv double %size, %most
  %part.2 = fmul double %part, %part
  %more = fadd double %so.far, %part.2
  store double %more, ptr %sum
  br label %added
added:
"
        )
    });
    format!(
        "declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
define double @{name}(ptr %of) {{
entry:
  %scale = alloca double
  %sum = alloca double
  store double 0.0, ptr %scale
  store double 0.0, ptr %sum
  %from = load ptr, ptr %of
{shape}{summed}  %scaled = load double, ptr %scale
  %squares = load double, ptr %sum
  %all = fadd double %squares, 1.0
  %root = call double @llvm.sqrt.f64(double %all)
  %norm = fmul double %scaled, %root
  ret double %norm
}}
"
    )
}

/// Text of `SPACING`: at least the smallest normal number; for the largest number the distance to its
/// predecessor.
pub(super) fn spacing_text(name: &str) -> String {
    format!(
        "declare double @llvm.fabs.f64(double)
declare double @llvm.maximum.f64(double, double)
declare double @nextafter(double, double)
define double @{name}(double %x) {{
  %size = call double @llvm.fabs.f64(double %x)
  %above = call double @nextafter(double %size, double 0x7FF0000000000000)
  %below = call double @nextafter(double %size, double 0.0)
  %up = fsub double %above, %size
  %down = fsub double %size, %below
  %last = fcmp oeq double %above, 0x7FF0000000000000
  %gap = select i1 %last, double %down, double %up
  %spacing = call double @llvm.maximum.f64(double %gap, double 0x0010000000000000)
  ret double %spacing
}}
"
    )
}

/// Text of the remainder of two numbers.
pub(super) fn remainder_text(name: &str, real: &str, floored: bool) -> String {
    let sign = if real == "float" { "f32" } else { "f64" };
    let rest = match floored {
        false => "  ret REAL %rest\n",
        true => {
            "  %none = fcmp oeq REAL %rest, 0.0
  %zero = call REAL @llvm.copysign.SIGN(REAL 0.0, REAL %by)
  %below = fcmp olt REAL %rest, 0.0
  %down = fcmp olt REAL %by, 0.0
  %apart = xor i1 %below, %down
  %other = fadd REAL %rest, %by
  %signed = select i1 %apart, REAL %other, REAL %rest
  %result = select i1 %none, REAL %zero, REAL %signed
  ret REAL %result
"
        }
    };
    let text = format!(
        "declare REAL @llvm.copysign.SIGN(REAL, REAL)
define REAL @{name}(REAL %of, REAL %by) {{
  %rest = frem REAL %of, %by
{rest}}}
"
    );
    text.replace("REAL", real).replace("SIGN", sign)
}
