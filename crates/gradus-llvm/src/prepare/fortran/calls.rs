//! The table of flang's run-time functions with a C body, and the constants of each call.
//!
//! A new function costs a body in `semantics/flang` and a row. Statements that need several calls have their
//! own modules.

use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::{StoredMembers, constant_int};
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::specialise::{Constant, Specialisation};
use crate::prepare::fortran::{
    allocations, assignments, derived_assign, pointers, reductions, transformational,
};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::BTreeMap;

/// A function of the library. Several rows of a function are tried in order.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) symbol: &'static str,
    /// The number of the function's arguments.
    pub(super) arguments: u32,
    /// The name of the C function.
    pub(super) body: &'static str,
    /// Returns the constants of a call; `None` if a descriptor is not known, or if the body does not apply.
    pub(super) constants: Constants,
}

/// Derives the trailing arguments of a body from a live call.
type Constants = unsafe fn(LLVMValueRef) -> Option<Vec<Constant>>;

const fn row(
    symbol: &'static str,
    arguments: u32,
    body: &'static str,
    constants: Constants,
) -> Row {
    Row {
        symbol,
        arguments,
        body,
        constants,
    }
}

/// Assignments, before `MOVE_ALLOC`.
pub(super) const ASSIGNMENTS: &[Row] = &[
    row("_FortranAAssign", 4, "assign", assignments::constants),
    row(
        "_FortranAAssign",
        4,
        "assign_derived",
        derived_assign::constants,
    ),
];

/// Statements in front of an allocation, and allocation with a source.
pub(super) const BOUNDS: &[Row] = &[
    row(
        "_FortranAAllocatableApplyMold",
        3,
        "apply_mold",
        allocations::mold_constants,
    ),
    row(
        "_FortranAAllocatableSetBounds",
        4,
        "set_bounds",
        |call| unsafe { dimension(call, 0) },
    ),
    row(
        "_FortranAAllocatableAllocateSource",
        6,
        "allocate_source",
        allocations::source_constants,
    ),
];

/// Statements of pointers, before deallocation.
pub(super) const POINTERS: &[Row] = &[
    row(
        "_FortranAPointerAllocateSource",
        6,
        "allocate_source",
        pointers::source_constants,
    ),
    row(
        "_FortranAPointerSetBounds",
        4,
        "set_bounds",
        |call| unsafe { dimension(call, 1) },
    ),
];

/// Copies of array arguments.
pub(super) const COPIES: &[Row] = &[
    row("_FortranAIsContiguous", 1, "is_contiguous", |call| unsafe {
        rank(call, 0)
    }),
    row("_FortranACopyInAssign", 4, "copy_in", |call| unsafe {
        numbers(call, 1)
    }),
    row("_FortranACopyOutAssign", 4, "drop_copy", |call| unsafe {
        without_target(call)
    }),
    row("_FortranACopyOutAssign", 4, "copy_out", |call| unsafe {
        numbers(call, 0)
    }),
];

/// Transformational functions.
pub(super) const TRANSFORMATIONAL: &[Row] = &[
    row("_FortranASpread", 6, "spread", transformational::result),
    row(
        "_FortranATranspose",
        4,
        "transpose",
        transformational::element,
    ),
    row("_FortranAReshape", 7, "reshape", transformational::reshape),
    row("_FortranAPack", 6, "pack", transformational::pack),
    row("_FortranAUnpack", 6, "unpack", transformational::unpack),
    row("_FortranACshift", 6, "cshift", transformational::cshift),
    row(
        "_FortranACshiftVector",
        5,
        "cshift_vector",
        transformational::element,
    ),
    row("_FortranAEoshift", 7, "eoshift", transformational::eoshift),
    row(
        "_FortranAEoshiftVector",
        6,
        "eoshift_vector",
        transformational::element,
    ),
];

/// Reductions. The type of a reduction along a dimension is in the descriptor.
pub(super) const REDUCTIONS: &[Row] = &[
    row("_FortranASumReal4", 5, "sum_float", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row("_FortranASumReal8", 5, "sum_double", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row("_FortranASumDim", 6, "sum_dim_float", |call| unsafe {
        reductions::float_along(call, 5)
    }),
    row("_FortranASumDim", 6, "sum_dim_double", |call| unsafe {
        reductions::double_along(call, 5)
    }),
    row("_FortranAProductReal4", 5, "product_float", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row(
        "_FortranAProductReal8",
        5,
        "product_double",
        |call| unsafe { reductions::masked(call, 0, 4) },
    ),
    row(
        "_FortranAProductDim",
        6,
        "product_dim_float",
        |call| unsafe { reductions::float_along(call, 5) },
    ),
    row(
        "_FortranAProductDim",
        6,
        "product_dim_double",
        |call| unsafe { reductions::double_along(call, 5) },
    ),
    row("_FortranAMaxvalReal4", 5, "maxval_float", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row("_FortranAMaxvalReal8", 5, "maxval_double", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row("_FortranAMaxvalDim", 6, "maxval_dim_float", |call| unsafe {
        reductions::float_along(call, 5)
    }),
    row(
        "_FortranAMaxvalDim",
        6,
        "maxval_dim_double",
        |call| unsafe { reductions::double_along(call, 5) },
    ),
    row("_FortranAMinvalReal4", 5, "minval_float", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row("_FortranAMinvalReal8", 5, "minval_double", |call| unsafe {
        reductions::masked(call, 0, 4)
    }),
    row("_FortranAMinvalDim", 6, "minval_dim_float", |call| unsafe {
        reductions::float_along(call, 5)
    }),
    row(
        "_FortranAMinvalDim",
        6,
        "minval_dim_double",
        |call| unsafe { reductions::double_along(call, 5) },
    ),
    row("_FortranAMaxlocReal4", 7, "maxloc_float", |call| unsafe {
        reductions::masked(call, 1, 5)
    }),
    row("_FortranAMaxlocReal8", 7, "maxloc_double", |call| unsafe {
        reductions::masked(call, 1, 5)
    }),
    row("_FortranAMaxlocDim", 8, "maxloc_dim_float", |call| unsafe {
        reductions::float_along(call, 6)
    }),
    row(
        "_FortranAMaxlocDim",
        8,
        "maxloc_dim_double",
        |call| unsafe { reductions::double_along(call, 6) },
    ),
    row("_FortranAMinlocReal4", 7, "minloc_float", |call| unsafe {
        reductions::masked(call, 1, 5)
    }),
    row("_FortranAMinlocReal8", 7, "minloc_double", |call| unsafe {
        reductions::masked(call, 1, 5)
    }),
    row("_FortranAMinlocDim", 8, "minloc_dim_float", |call| unsafe {
        reductions::float_along(call, 6)
    }),
    row(
        "_FortranAMinlocDim",
        8,
        "minloc_dim_double",
        |call| unsafe { reductions::double_along(call, 6) },
    ),
    row("_FortranANorm2_4", 4, "norm2_float", |call| unsafe {
        whole_array(call, 3)
    }),
    row("_FortranANorm2_8", 4, "norm2_double", |call| unsafe {
        whole_array(call, 3)
    }),
    row(
        "_FortranANorm2Dim",
        5,
        "norm2_dim_float",
        reductions::norm_float,
    ),
    row(
        "_FortranANorm2Dim",
        5,
        "norm2_dim_double",
        reductions::norm_double,
    ),
    row("_FortranADotProductReal4", 4, "dot_product_float", nothing),
    row(
        "_FortranAMatmulReal4Real4",
        5,
        "matmul_float",
        |call| unsafe { reductions::product(call, 0) },
    ),
    row(
        "_FortranAMatmulTransposeReal4Real4",
        5,
        "matmul_float",
        |call| unsafe { reductions::product(call, 1) },
    ),
    row("_FortranADotProductReal8", 4, "dot_product_double", nothing),
    row(
        "_FortranAMatmulReal8Real8",
        5,
        "matmul_double",
        |call| unsafe { reductions::product(call, 0) },
    ),
    row(
        "_FortranAMatmulTransposeReal8Real8",
        5,
        "matmul_double",
        |call| unsafe { reductions::product(call, 1) },
    ),
];

/// Numeric functions.
pub(super) const NUMERIC: &[Row] = &[
    row("_FortranASpacing4", 1, "spacing_float", nothing),
    row("_FortranASpacing8", 1, "spacing_double", nothing),
    row("_FortranARRSpacing4", 1, "rrspacing_float", nothing),
    row("_FortranARRSpacing8", 1, "rrspacing_double", nothing),
    row("_FortranAFraction4", 1, "fraction_float", nothing),
    row("_FortranAFraction8", 1, "fraction_double", nothing),
    row("_FortranAScale4", 2, "scale_float", nothing),
    row("_FortranAScale8", 2, "scale_double", nothing),
    row("_FortranASetExponent4", 2, "set_exponent_float", nothing),
    row("_FortranASetExponent8", 2, "set_exponent_double", nothing),
    row("_FortranAExponent4_4", 1, "exponent_float", nothing),
    row("_FortranAExponent8_4", 1, "exponent_double", nothing),
    row("_FortranAModReal4", 4, "mod_float", nothing),
    row("_FortranAModReal8", 4, "mod_double", nothing),
    row("_FortranAModuloReal4", 4, "modulo_float", nothing),
    row("_FortranAModuloReal8", 4, "modulo_double", nothing),
];

impl Host {
    /// Replaces the calls of each row by calls of specialised bodies. All calls of a row are read before any
    /// is replaced.
    ///
    /// # Errors
    /// LLVM's message if a pass fails.
    pub(super) fn expand_calls(&mut self, rows: &[Row]) -> Result<(), Diagnostic> {
        for row in rows {
            let mut found: BTreeMap<Specialisation, Vec<LLVMValueRef>> = BTreeMap::new();
            for call in self.calls_of(row.symbol, row.arguments) {
                if let Some(constants) = unsafe { (row.constants)(call) } {
                    let body = row.body;
                    let written = Specialisation { body, constants };
                    found.entry(written).or_default().push(call);
                }
            }
            for (written, calls) in found {
                self.replace_calls(&written, &calls)?;
            }
        }
        Ok(())
    }
}

unsafe fn nothing(_: LLVMValueRef) -> Option<Vec<Constant>> {
    Some(Vec::new())
}

/// Returns the rank of an operand.
unsafe fn rank(call: LLVMValueRef, operand: u32) -> Option<Vec<Constant>> {
    let rank = unsafe { StoredMembers::in_variable(LLVMGetOperand(call, operand))?.rank()? };
    Some(vec![Constant::Number(rank)])
}

/// Returns the rank and the element of an operand of intrinsic type.
unsafe fn numbers(call: LLVMValueRef, operand: u32) -> Option<Vec<Constant>> {
    let (rank, element) = unsafe { described_intrinsic(call, operand)? };
    Some(vec![Constant::Number(rank), Constant::Element(element)])
}

/// Returns the rank of the first operand of a reduction without a mask.
unsafe fn whole_array(call: LLVMValueRef, mask: u32) -> Option<Vec<Constant>> {
    unsafe { is_null(call, mask).then(|| rank(call, 0))? }
}

/// Matches a copy-out after read-only use.
unsafe fn without_target(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe { is_null(call, 0).then(Vec::new) }
}

/// Returns the dimension whose bounds a call sets, and whether the variable is a pointer.
unsafe fn dimension(call: LLVMValueRef, pointer: u64) -> Option<Vec<Constant>> {
    let dimension = unsafe { constant_int(LLVMGetOperand(call, 1))? };
    Some(vec![Constant::Number(dimension), Constant::Number(pointer)])
}

unsafe fn is_null(call: LLVMValueRef, operand: u32) -> bool {
    unsafe { LLVMIsNull(LLVMGetOperand(call, operand)) != 0 }
}

/// Returns the rank and element layout of a call's operand.
///
/// # Safety
/// `call` is a live call with such an operand.
pub(super) unsafe fn described_operand(call: LLVMValueRef, operand: u32) -> Option<(u64, Element)> {
    unsafe {
        let number = described_intrinsic(call, operand);
        number.or_else(|| described_derived(call, operand))
    }
}

/// Like [`described_operand`], for intrinsic types only.
unsafe fn described_intrinsic(call: LLVMValueRef, operand: u32) -> Option<(u64, Element)> {
    unsafe {
        let left = StoredMembers::in_variable(LLVMGetOperand(call, operand))?;
        Some((left.rank()?, Element::of(left.element()?)?))
    }
}

unsafe fn described_derived(call: LLVMValueRef, operand: u32) -> Option<(u64, Element)> {
    unsafe {
        let left = StoredMembers::in_variable(LLVMGetOperand(call, operand))?;
        let ty = left.derived().filter(|_| left.has_declared_type(false))?;
        Some((left.rank()?, ty.copy_layout()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_body() {
        let bodies = Specialisation::bodies();
        let tables = [
            ASSIGNMENTS,
            BOUNDS,
            POINTERS,
            COPIES,
            TRANSFORMATIONAL,
            REDUCTIONS,
            NUMERIC,
        ];
        for row in tables.concat() {
            assert!(bodies.contains(&row.body.to_owned()), "{}", row.body);
        }
    }
}
