//! Replacement functions for flang's runtime calls, and the LLVM text that they share.

use super::allocations::Allocation;
use crate::host::ffi::{NO_NAME, c_string};
use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::type_info::AllocatableComponent;
use crate::prepare::fortran::{
    allocations, array_constructors, assignments, contiguous_copies, derived_assign, finalize,
    initialize, intrinsics, pointers,
};
use gradus_ir::Diagnostic;
use gradus_ir::externals::QUERY_SYMBOL;
use llvm_sys::LLVMLinkage::LLVMInternalLinkage;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;
use std::collections::BTreeMap;

/// Prefix of the names of replacement functions.
pub(super) const RUNTIME_PREFIX: &str = "__gr_fortran_";

/// A replacement function. The parameters are the leading arguments of the replaced call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuntimeReplacement {
    /// Assigns an array; with `spread` a scalar to each element.
    Assign {
        element: Element,
        rank: u64,
        spread: bool,
    },
    /// Assigns a variable of a derived type with allocatable components.
    AssignHeld {
        element: Element,
        held: Vec<AllocatableComponent>,
    },
    Move {
        rank: u64,
    },
    /// Sets the bounds of a dimension before allocation.
    Bounds {
        dimension: u64,
        points: bool,
    },
    /// Copies the bounds of a variable of the given rank before allocation.
    Mold {
        rank: u64,
    },
    /// Allocates.
    New(Allocation),
    /// Allocates and copies an array, or with `spread` a scalar into each element.
    Allocate {
        new: Allocation,
        element: Element,
        spread: bool,
    },
    /// Deallocates.
    Delete {
        state: bool,
    },
    /// Ends the program if a pointer deallocation would free more than plain memory.
    Plain,
    /// Frees the address at an offset of each element; `dense` as in `Fill`.
    Release {
        rank: u64,
        dense: Option<u64>,
    },
    /// Tests whether the elements of an array are contiguous.
    Contiguous {
        rank: u64,
    },
    /// Creates a contiguous copy of an array.
    CopyIn {
        element: Element,
        rank: u64,
    },
    /// Copies such a copy back to the array and frees the copy.
    CopyOut {
        element: Element,
        rank: u64,
    },
    /// Frees such a copy only.
    Drop,
    /// Begins a vector for an array constructor.
    Begin,
    /// Appends the elements of an array to a vector.
    Push {
        element: Element,
        rank: u64,
    },
    /// Appends a scalar to a vector.
    PushScalar {
        element: Element,
    },
    /// Copies a constant of so many bytes into each element of an array; `dense` is the element size in
    /// bytes of a contiguous array.
    Fill {
        rank: u64,
        bytes: u64,
        dense: Option<u64>,
    },
    /// Computes the distance from a number to the next.
    Spacing,
    /// Computes the Euclidean norm of a double-precision array.
    Norm {
        rank: u64,
    },
    /// Computes `MOD` or `MODULO` of numbers of LLVM's type `real`.
    Remainder {
        real: &'static str,
        floored: bool,
    },
}

impl Host {
    /// Replaces all calls of a library function that `read` matches.
    pub(super) fn expand_calls(
        &mut self,
        name: &str,
        arguments: u32,
        read: impl Fn(LLVMValueRef) -> Option<RuntimeReplacement>,
    ) -> Result<(), Diagnostic> {
        let mut found: BTreeMap<RuntimeReplacement, Vec<LLVMValueRef>> = BTreeMap::new();
        for call in self.calls_of(name, arguments) {
            if let Some(written) = read(call) {
                found.entry(written).or_default().push(call);
            }
        }
        for (written, calls) in found {
            self.replace_calls(written, &calls)?;
        }
        Ok(())
    }

    /// Returns the replacement function, defined in the module on first use.
    pub(super) fn runtime_function(
        &mut self,
        written: RuntimeReplacement,
    ) -> Result<LLVMValueRef, Diagnostic> {
        let name = written.name();
        if !self.defines(&name) {
            let module = self.read_text(written.text(&name).as_bytes(), &name)?;
            unsafe {
                LLVMSetDataLayout(module, LLVMGetDataLayoutStr(self.module));
                LLVMSetTarget(module, LLVMGetTarget(self.module));
            }
            self.link_module(module, &name)?;
        }
        let name = c_string(&name);
        unsafe {
            let function = LLVMGetNamedFunction(self.module, name.as_ptr());
            // The function becomes internal only after linking: the linker drops internal functions without
            // uses.
            LLVMSetLinkage(function, LLVMInternalLinkage);
            Ok(function)
        }
    }

    /// Replaces each call by a call of the replacement function.
    pub(super) fn replace_calls(
        &mut self,
        written: RuntimeReplacement,
        calls: &[LLVMValueRef],
    ) -> Result<(), Diagnostic> {
        let function = self.runtime_function(written)?;
        for &call in calls {
            unsafe {
                let count = LLVMCountParams(function);
                let given: Vec<_> = (0..count).map(|i| LLVMGetOperand(call, i)).collect();
                let made = self.call_before(call, function, &given);
                LLVMReplaceAllUsesWith(call, made);
                LLVMInstructionEraseFromParent(call);
            }
        }
        Ok(())
    }

    /// Emits a call in front of an instruction, with the instruction's debug location.
    ///
    /// # Safety
    /// All are live values of the module, and the arguments match the function's type.
    pub(super) unsafe fn call_before(
        &self,
        before: LLVMValueRef,
        function: LLVMValueRef,
        given: &[LLVMValueRef],
    ) -> LLVMValueRef {
        let mut given = given.to_vec();
        let count = given.len() as u32;
        unsafe {
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, before);
            let ty = LLVMGlobalGetValueType(function);
            let made = LLVMBuildCall2(build, ty, function, given.as_mut_ptr(), count, NO_NAME);
            LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(before));
            LLVMDisposeBuilder(build);
            made
        }
    }
}

impl RuntimeReplacement {
    fn name(&self) -> String {
        let how = |is: bool, yes: &'static str, no: &'static str| if is { yes } else { no };
        let what = match self {
            RuntimeReplacement::Assign {
                element,
                rank,
                spread,
            } => format!(
                "{}_{}_{rank}",
                how(*spread, "spread", "assign"),
                element.name()
            ),
            RuntimeReplacement::AssignHeld { element, held } => derived_assign::name(element, held),
            RuntimeReplacement::Move { rank } => format!("move_{rank}"),
            RuntimeReplacement::Bounds { dimension, points } => {
                format!("bounds_{dimension}{}", how(*points, "_pointer", ""))
            }
            RuntimeReplacement::Mold { rank } => format!("mold_{rank}"),
            RuntimeReplacement::New(new) => format!("new_{}_{}", new.bytes, new.name()),
            RuntimeReplacement::Allocate {
                new,
                element,
                spread,
            } => format!(
                "{}_{}_{}",
                how(*spread, "fill", "allocate"),
                element.name(),
                new.name()
            ),
            RuntimeReplacement::Plain => return format!("{QUERY_SYMBOL}_plain"),
            RuntimeReplacement::Delete { state } => format!("delete{}", how(*state, "_state", "")),
            RuntimeReplacement::Release { rank, dense } => {
                format!("release_{rank}{}", dense_suffix(*dense))
            }
            RuntimeReplacement::Contiguous { rank } => format!("contiguous_{rank}"),
            RuntimeReplacement::CopyIn { element, rank } => {
                format!("copy_in_{}_{rank}", element.name())
            }
            RuntimeReplacement::CopyOut { element, rank } => {
                format!("copy_out_{}_{rank}", element.name())
            }
            RuntimeReplacement::Drop => "drop".to_string(),
            RuntimeReplacement::Begin => "begin".to_string(),
            RuntimeReplacement::Push { element, rank } => format!("push_{}_{rank}", element.name()),
            RuntimeReplacement::PushScalar { element } => format!("push_{}", element.name()),
            RuntimeReplacement::Fill { rank, bytes, dense } => {
                format!("fill_{rank}_{bytes}{}", dense_suffix(*dense))
            }
            RuntimeReplacement::Spacing => "spacing".to_string(),
            RuntimeReplacement::Norm { rank } => format!("norm_{rank}"),
            RuntimeReplacement::Remainder { real, floored } => {
                format!("{}_{real}", how(*floored, "modulo", "mod"))
            }
        };
        format!("{RUNTIME_PREFIX}{what}")
    }

    /// Returns the function in LLVM's text.
    fn text(self, name: &str) -> String {
        match self {
            RuntimeReplacement::Assign {
                element,
                rank,
                spread,
            } => assignments::assign_text(name, &element, rank, spread),
            RuntimeReplacement::AssignHeld { element, held } => {
                derived_assign::text(name, &element, &held)
            }
            RuntimeReplacement::Move { rank } => assignments::move_text(name, rank),
            RuntimeReplacement::Bounds { dimension, points } => {
                allocations::bounds_text(name, dimension, points)
            }
            RuntimeReplacement::Mold { rank } => allocations::mold_text(name, rank),
            RuntimeReplacement::New(new) => new.text(name),
            RuntimeReplacement::Allocate {
                new,
                element,
                spread,
            } => new.text_with_source(name, &element, spread),
            RuntimeReplacement::Plain => pointers::plain_memory_check_text(name),
            RuntimeReplacement::Delete { state } => allocations::delete_text(name, state),
            RuntimeReplacement::Release { rank, dense } => {
                finalize::release_text(name, rank, dense)
            }
            RuntimeReplacement::Contiguous { rank } => {
                contiguous_copies::contiguous_text(name, rank)
            }
            RuntimeReplacement::CopyIn { element, rank } => {
                contiguous_copies::copy_in_text(name, &element, rank)
            }
            RuntimeReplacement::CopyOut { element, rank } => {
                contiguous_copies::copy_out_text(name, &element, rank)
            }
            RuntimeReplacement::Drop => contiguous_copies::drop_text(name),
            RuntimeReplacement::Begin => array_constructors::begin_text(name),
            RuntimeReplacement::Push { element, rank } => {
                array_constructors::push_text(name, &element, rank)
            }
            RuntimeReplacement::PushScalar { element } => {
                array_constructors::push_scalar_text(name, &element)
            }
            RuntimeReplacement::Fill { rank, bytes, dense } => {
                initialize::fill_text(name, rank, bytes, dense)
            }
            RuntimeReplacement::Spacing => intrinsics::spacing_text(name),
            RuntimeReplacement::Norm { rank } => intrinsics::norm_text(name, rank),
            RuntimeReplacement::Remainder { real, floored } => {
                intrinsics::remainder_text(name, real, floored)
            }
        }
    }
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
///
/// # Safety
/// `call` is a live call with such an operand.
pub(super) unsafe fn described_intrinsic(
    call: LLVMValueRef,
    operand: u32,
) -> Option<(u64, Element)> {
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

/// LLVM type of a descriptor with the maximum number of dimensions; bounds are lower bound, extent, and
/// stride in bytes.
pub(super) const DESCRIPTOR: &str = "{ ptr, i64, i32, i8, i8, i8, i8, [15 x [3 x i64]] }";
/// Concatenates the text of each dimension.
pub(super) fn each_dimension(rank: u64, line: impl Fn(u64) -> String) -> String {
    (0..rank).map(line).collect()
}

/// Returns the name that the previous dimension defined; `first` in dimension 0.
pub(super) fn previous_dimension(name: &str, dimension: u64, first: &str) -> String {
    match dimension {
        0 => first.to_string(),
        _ => format!("%{name}.{}", dimension - 1),
    }
}

/// Text that loads member `member` of a descriptor's bounds in each dimension.
pub(super) fn load_bounds_text(rank: u64, descriptor: &str, member: u32, name: &str) -> String {
    each_dimension(rank, |d| {
        format!(
            "  %{name}.at.{d} = getelementptr {DESCRIPTOR}, ptr %{descriptor}, i32 0, i32 7, i64 {d}, i64 {member}
  %{name}.{d} = load i64, ptr %{name}.at.{d}
"
        )
    })
}

fn dense_suffix(dense: Option<u64>) -> String {
    dense.map_or(String::new(), |size| format!("_dense_{size}"))
}

/// Text that runs `body` for each element of the array `of`, whose first address is `to`. A contiguous
/// array is a single dimension with a constant stride.
pub(super) fn each_element(rank: u64, dense: Option<u64>, body: impl Fn(&str) -> String) -> String {
    let (shape, rank) = match dense {
        None => (
            load_bounds_text(rank, "of", 1, "n") + &load_bounds_text(rank, "of", 2, "t"),
            rank,
        ),
        Some(size) => {
            let counted = each_dimension(rank, |d| {
                format!(
                    "  %sum.{d} = mul i64 {}, %m.{d}\n",
                    previous_dimension("sum", d, "1")
                )
            });
            let (shape, all) = (
                load_bounds_text(rank, "of", 1, "m"),
                previous_dimension("sum", rank, "1"),
            );
            let row = format!("  %n.0 = add i64 {all}, 0\n  %t.0 = add i64 {size}, 0\n");
            (shape + &counted + &row, 1)
        }
    };
    shape + &loop_nest_text(rank, &[("to", "t")], |at| body(&at[0]))
}

/// Text of a loop nest over all elements, with `body` once for each, between the labels `entry` and `done`.
/// Each of `sides` is an address and the name of its strides; `body` receives the element's addresses.
pub(super) fn loop_nest_text(
    rank: u64,
    sides: &[(&str, &str)],
    body: impl Fn(&[String]) -> String,
) -> String {
    let some = each_dimension(rank, |d| {
        let so_far = previous_dimension("some", d, "true");
        format!("  %has.{d} = icmp sgt i64 %n.{d}, 0\n  %some.{d} = and i1 {so_far}, %has.{d}\n")
    });
    let head = |d: u64| {
        let from = if d + 1 < rank {
            format!("loop.{}", d + 1)
        } else {
            "entry".into()
        };
        let inner = if d > 0 {
            format!("loop.{}", d - 1)
        } else {
            "element".into()
        };
        let moved = sides.iter().map(|(side, stride)| {
            let outer = if d + 1 < rank {
                format!("{side}.{}", d + 1)
            } else {
                side.to_string()
            };
            format!(
                "  %{side}.off.{d} = mul i64 %i.{d}, %{stride}.{d}
  %{side}.{d} = getelementptr i8, ptr %{outer}, i64 %{side}.off.{d}
"
            )
        });
        let moved: String = moved.collect();
        format!(
            "loop.{d}:
  %i.{d} = phi i64 [ 0, %{from} ], [ %next.{d}, %end.{d} ]
{moved}  br label %{inner}
"
        )
    };
    let heads: String = (0..rank).rev().map(head).collect();
    let ends = each_dimension(rank, |d| {
        let behind = if d + 1 < rank {
            format!("end.{}", d + 1)
        } else {
            "done".into()
        };
        format!(
            "end.{d}:
  %next.{d} = add nuw nsw i64 %i.{d}, 1
  %all.{d} = icmp eq i64 %next.{d}, %n.{d}
  br i1 %all.{d}, label %{behind}, label %loop.{d}
"
        )
    });
    let at = |(side, _): &(&str, &str)| {
        if rank > 0 {
            format!("%{side}.0")
        } else {
            format!("%{side}")
        }
    };
    let body = body(&sides.iter().map(at).collect::<Vec<_>>());
    let some_at_all = previous_dimension("some", rank, "true");
    let first = if rank > 0 {
        format!("loop.{}", rank - 1)
    } else {
        "element".into()
    };
    let after = if rank > 0 { "end.0" } else { "done" };
    format!(
        "{some}  br i1 {some_at_all}, label %{first}, label %done
{heads}element:
{body}  br label %{after}
{ends}done:
"
    )
}
