//! The functions that take the place of calls, and LLVM's text for what they have in common.

use super::descriptors::Left;
use super::{allocations, assignments, copies, initialisations, numbers};
use crate::ffi::{NO_NAME, c_string};
use crate::host::Host;
use gradus_ir::Diagnostic;
use llvm_sys::LLVMLinkage::LLVMInternalLinkage;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;
use std::collections::BTreeMap;

/// What an element of an array consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Element {
    /// LLVM's name of the type of its parts.
    pub(super) part: &'static str,
    pub(super) bytes: u64,
    pub(super) parts: u64,
}

impl Element {
    /// By the code in a descriptor (`CFI_type_…`): integers and logicals, which count as the least integers of so
    /// many bits, reals and complex numbers.
    pub(super) fn of(code: u64) -> Option<Element> {
        let element = |part, bytes, parts| Some(Element { part, bytes, parts });
        match code {
            7 | 12 | 39 => element("i8", 1, 1),
            8 | 13 => element("i16", 2, 1),
            9 | 14 => element("i32", 4, 1),
            10 | 15 => element("i64", 8, 1),
            27 => element("float", 4, 1),
            28 => element("double", 8, 1),
            34 => element("float", 4, 2),
            35 => element("double", 8, 2),
            _ => None,
        }
    }

    pub(super) fn size(self) -> u64 {
        self.bytes * self.parts
    }
}

/// A function that takes the place of calls; it has the first arguments of the call that its type has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Written {
    /// Of an array, or of a scalar to each element of one.
    Assign {
        element: Element,
        rank: u64,
        spread: bool,
    },
    Move {
        rank: u64,
    },
    /// The bounds of a dimension of what is to be allocated.
    Bounds {
        dimension: u64,
    },
    /// Allocation with the contents of an array, or of a scalar in each element.
    Allocate {
        element: Element,
        rank: u64,
        spread: bool,
    },
    /// Whether the elements of an array stand side by side.
    Contiguous {
        rank: u64,
    },
    /// A copy of an array whose elements do.
    CopyIn {
        element: Element,
        rank: u64,
    },
    /// Such a copy goes back to the array, and goes.
    CopyOut {
        element: Element,
        rank: u64,
    },
    /// It only goes.
    Drop,
    /// A constant of so many bytes goes into each element of an array.
    Fill {
        rank: u64,
        bytes: u64,
    },
    /// The distance from a number to the next one.
    Spacing,
    /// The Euclidean norm of an array of double precision.
    Norm {
        rank: u64,
    },
    /// `MOD` and `MODULO` of numbers of LLVM's type `real`.
    Remainder {
        real: &'static str,
        floored: bool,
    },
}

impl Host {
    /// Has functions of our own called where the library's are, as far as `read` knows what a call does.
    pub(super) fn write_out(
        &mut self,
        name: &str,
        arguments: u32,
        read: impl Fn(LLVMValueRef) -> Option<Written>,
    ) -> Result<(), Diagnostic> {
        let mut found: BTreeMap<Written, Vec<LLVMValueRef>> = BTreeMap::new();
        for call in self.calls_of(name, arguments) {
            if let Some(written) = read(call) {
                found.entry(written).or_default().push(call);
            }
        }
        for (written, calls) in found {
            self.replace(written, &calls)?;
        }
        Ok(())
    }

    /// The function that is written, in this module.
    pub(super) fn function_of(&mut self, written: Written) -> Result<LLVMValueRef, Diagnostic> {
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
            // Not from its beginning: nothing would have called it when it was linked.
            LLVMSetLinkage(function, LLVMInternalLinkage);
            Ok(function)
        }
    }

    fn replace(&mut self, written: Written, calls: &[LLVMValueRef]) -> Result<(), Diagnostic> {
        let function = self.function_of(written)?;
        unsafe {
            let ty = LLVMGlobalGetValueType(function);
            let count = LLVMCountParams(function);
            let build = LLVMCreateBuilderInContext(self.ctx);
            for &call in calls {
                LLVMPositionBuilderBefore(build, call);
                let mut given: Vec<LLVMValueRef> =
                    (0..count).map(|i| LLVMGetOperand(call, i)).collect();
                let made = LLVMBuildCall2(build, ty, function, given.as_mut_ptr(), count, NO_NAME);
                LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(call));
                LLVMReplaceAllUsesWith(call, made);
                LLVMInstructionEraseFromParent(call);
            }
            LLVMDisposeBuilder(build);
        }
        Ok(())
    }
}

impl Written {
    fn name(self) -> String {
        let what = match self {
            Written::Assign {
                element: Element { part, parts, .. },
                rank,
                spread,
            } => {
                let how = if spread { "spread" } else { "assign" };
                format!("{how}_{parts}_{part}_{rank}")
            }
            Written::Move { rank } => format!("move_{rank}"),
            Written::Bounds { dimension } => format!("bounds_{dimension}"),
            Written::Allocate {
                element: Element { part, parts, .. },
                rank,
                spread,
            } => {
                let how = if spread { "fill" } else { "allocate" };
                format!("{how}_{parts}_{part}_{rank}")
            }
            Written::Contiguous { rank } => format!("contiguous_{rank}"),
            Written::CopyIn {
                element: Element { part, parts, .. },
                rank,
            } => format!("copy_in_{parts}_{part}_{rank}"),
            Written::CopyOut {
                element: Element { part, parts, .. },
                rank,
            } => format!("copy_out_{parts}_{part}_{rank}"),
            Written::Drop => "drop".to_string(),
            Written::Fill { rank, bytes } => format!("fill_{rank}_{bytes}"),
            Written::Spacing => "spacing".to_string(),
            Written::Norm { rank } => format!("norm_{rank}"),
            Written::Remainder { real, floored } => {
                let how = if floored { "modulo" } else { "mod" };
                format!("{how}_{real}")
            }
        };
        format!("__gr_fortran_{what}")
    }

    /// The function in LLVM's text.
    fn text(self, name: &str) -> String {
        match self {
            Written::Assign {
                element,
                rank,
                spread,
            } => assignments::assign_text(name, element, rank, spread),
            Written::Move { rank } => assignments::move_text(name, rank),
            Written::Bounds { dimension } => allocations::bounds_text(name, dimension),
            Written::Allocate {
                element,
                rank,
                spread,
            } => allocations::allocate_text(name, element, rank, spread),
            Written::Contiguous { rank } => copies::contiguous_text(name, rank),
            Written::CopyIn { element, rank } => copies::in_text(name, element, rank),
            Written::CopyOut { element, rank } => copies::out_text(name, element, rank),
            Written::Drop => copies::drop_text(name),
            Written::Fill { rank, bytes } => initialisations::fill_text(name, rank, bytes),
            Written::Spacing => numbers::spacing_text(name),
            Written::Norm { rank } => numbers::norm_text(name, rank),
            Written::Remainder { real, floored } => numbers::remainder_text(name, real, floored),
        }
    }
}

/// The rank and the elements of what an operand of a call describes.
///
/// # Safety
/// `call` is a live call with such an operand.
pub(super) unsafe fn described(call: LLVMValueRef, operand: u32) -> Option<(u64, Element)> {
    unsafe {
        let left = Left::in_variable(LLVMGetOperand(call, operand))?;
        Some((left.rank()?, Element::of(left.element()?)?))
    }
}

/// A descriptor, with the bounds of as many dimensions as there may be: the lowest index, the number of elements,
/// and the bytes from one to the next.
pub(super) const DESCRIPTOR: &str = "{ ptr, i64, i32, i8, i8, i8, i8, [15 x [3 x i64]] }";
/// Lines for each dimension.
pub(super) fn each(rank: u64, line: impl Fn(u64) -> String) -> String {
    (0..rank).map(line).collect()
}

/// The value that the dimension before left under a name.
pub(super) fn before(name: &str, dimension: u64, first: &str) -> String {
    match dimension {
        0 => first.to_string(),
        _ => format!("%{name}.{}", dimension - 1),
    }
}

/// Reads member `member` of a descriptor's bounds in each dimension.
pub(super) fn bounds(rank: u64, descriptor: &str, member: u32, name: &str) -> String {
    each(rank, |d| {
        format!(
            "  %{name}.at.{d} = getelementptr {DESCRIPTOR}, ptr %{descriptor}, i32 0, i32 7, i64 {d}, i64 {member}
  %{name}.{d} = load i64, ptr %{name}.at.{d}
"
        )
    })
}

/// A nest of loops over all elements, `body` once for each, between the labels `entry` and `done`. Each of `sides` is
/// an address and the letter of its strides; `body` finds the element's at the addresses that it is given.
pub(super) fn nest(
    rank: u64,
    sides: &[(&str, &str)],
    body: impl Fn(&[String]) -> String,
) -> String {
    let some = each(rank, |d| {
        let so_far = before("some", d, "true");
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
    let ends = each(rank, |d| {
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
    let some_at_all = before("some", rank, "true");
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

/// Copies an element, part by part.
pub(super) fn element_text(element: Element, to: &str, from: &str) -> String {
    let Element { part, bytes, parts } = element;
    let line = |p: u64| {
        let at = p * bytes;
        format!(
            "  %get.{p} = getelementptr i8, ptr {from}, i64 {at}
  %value.{p} = load {part}, ptr %get.{p}
  %put.{p} = getelementptr i8, ptr {to}, i64 {at}
  store {part} %value.{p}, ptr %put.{p}
"
        )
    };
    (0..parts).map(line).collect()
}
