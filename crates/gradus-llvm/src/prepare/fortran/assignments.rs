//! Expands flang's array assignments and `MOVE_ALLOC`.
//!
//! flang emits `_FortranAAssign(to, from, …)` for `a = …` if `a` is allocatable, or if the right-hand side
//! may overlap `a`. A replacement function exists for each rank and element type:
//!
//! ```text
//! to is allocatable, and not allocated or of another shape:
//!     memory of the shape of `from` is allocated and filled, the old memory of `to` is freed
//! the two overlap:    through a temporary copy
//! else:               element by element
//! ```
//!
//! `_FortranAMoveAlloc(to, from, …)` frees the old memory of `to` and transfers the memory of `from`.
//! Accesses through both variables then alias, although flang's TBAA tags deny it. Elements of derived
//! types with allocatable components and of characters, and descriptors of unknown contents stay calls,
//! except for the scalars of [`derived_assign`]. Semantics: Fortran 2018, 10.2.1.3 and 16.9.137; bounds
//! as set by flang-rt 22.

use crate::host::ffi::{functions_of, instructions_in};
use crate::host::module::Host;
use crate::prepare::fortran::derived_assign;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::runtime_library::{
    DESCRIPTOR, RuntimeReplacement, described_operand, each_dimension, load_bounds_text,
    loop_nest_text, previous_dimension,
};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Member of a descriptor with the attribute, and its value for an allocatable variable.
const ATTRIBUTE: u32 = 5;
const ALLOCATABLE: u8 = 2;

/// Matches an assignment whose descriptors are known.
///
/// # Safety
/// `call` is a live call of `_FortranAAssign`.
pub(super) unsafe fn match_assign(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        let Some((rank, element)) = described_operand(call, 1) else {
            return derived_assign::match_component_assign(call);
        };
        let to = described_operand(call, 0);
        if to.as_ref().is_some_and(|(_, other)| *other != element) {
            return None;
        }
        let written = |rank, spread| RuntimeReplacement::Assign {
            element: element.clone(),
            rank,
            spread,
        };
        match (rank, to) {
            (0, Some((rank, _))) => Some(written(rank, rank > 0)),
            (0, None) => None,
            (rank, Some((other, _))) if other != rank => None,
            (rank, _) => Some(written(rank, false)),
        }
    }
}

/// The variable of a `MOVE_ALLOC`.
#[derive(PartialEq)]
struct MoveAlloc {
    rank: u64,
    /// The bytes of an element.
    bytes: u64,
    /// Offsets in each element of the target at which freed addresses are stored.
    freed: Vec<u64>,
}

/// Matches a `MOVE_ALLOC`; `None` if the variable may be polymorphic, or if neither descriptor is known.
unsafe fn match_move_alloc(call: LLVMValueRef) -> Option<MoveAlloc> {
    unsafe {
        if LLVMIsNull(LLVMGetOperand(call, 2)) == 0 {
            return None;
        }
        let side = |side| describe_moved(LLVMGetOperand(call, side));
        match (side(0), side(1)) {
            (Some(to), Some(from)) if to != from => None,
            (to, from) => to.or(from),
        }
    }
}

unsafe fn describe_moved(descriptor: LLVMValueRef) -> Option<MoveAlloc> {
    unsafe {
        let left = StoredMembers::in_dummy_argument(descriptor)?;
        let (bytes, freed) = match Element::of(left.element()?) {
            Some(element) => (element.size(), Vec::new()),
            None => (left.derived()?.size()?, left.derived()?.freed_offsets()?),
        };
        let rank = left.rank()?;
        Some(MoveAlloc { rank, bytes, freed })
    }
}

impl Host {
    /// Drops all TBAA tags: after a move, flang's tags of the two variables contradict the aliasing.
    fn drop_tbaa(&self) {
        unsafe {
            let kind = LLVMGetMDKindIDInContext(self.ctx, c"tbaa".as_ptr(), 4);
            for function in functions_of(self.module) {
                for at in instructions_in(function) {
                    LLVMSetMetadata(at, kind, std::ptr::null_mut());
                }
            }
        }
    }

    /// Expands `MOVE_ALLOC`.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_move_alloc(&mut self) -> Result<(), Diagnostic> {
        let calls = self.calls_of("_FortranAMoveAlloc", 7);
        // All calls are matched before any is replaced, because the uses of a descriptor are evidence of
        // its type.
        let read = |&call: &LLVMValueRef| Some((call, unsafe { match_move_alloc(call)? }));
        let moves: Vec<_> = calls.iter().filter_map(read).collect();
        if !moves.is_empty() {
            self.drop_tbaa();
        }
        for (call, MoveAlloc { rank, bytes, freed }) in moves {
            let dense = Some(bytes);
            unsafe {
                self.free_components(call, RuntimeReplacement::Release { rank, dense }, &freed)?
            };
            self.replace_calls(RuntimeReplacement::Move { rank }, &[call])?;
        }
        Ok(())
    }
}

/// Text of the internal function that copies elements from `from` to `to`, with strides in bytes for each
/// side.
pub(super) fn copy_text(name: &str, element: &Element, rank: u64) -> String {
    let params = each_dimension(rank, |d| format!(", i64 %t.{d}, i64 %f.{d}, i64 %n.{d}"));
    let moved = loop_nest_text(rank, &[("to", "t"), ("from", "f")], |at| {
        element.text(&at[0], &at[1])
    });
    format!(
        "define internal void @{name}_copy(ptr %to, ptr %from{params}) {{
entry:
{moved}  ret void
}}
"
    )
}

/// Text of the function for `to = from`.
pub(super) fn assign_text(name: &str, element: &Element, rank: u64, spread: bool) -> String {
    let size = element.size();
    let apart = |d: u64| {
        if spread {
            "0".to_string()
        } else {
            format!("%f.{d}")
        }
    };
    let dense = |d: u64| {
        if spread {
            "0".to_string()
        } else {
            previous_dimension("all", d, &size.to_string())
        }
    };
    let shape = match spread {
        true => load_bounds_text(rank, "to", 1, "n"),
        false => load_bounds_text(rank, "from", 1, "n") + &load_bounds_text(rank, "from", 2, "f"),
    };
    let sizes = each_dimension(rank, |d| {
        let so_far = previous_dimension("all", d, &size.to_string());
        format!("  %all.{d} = mul i64 {so_far}, %n.{d}\n")
    });
    let whole = match spread {
        true => size.to_string(),
        false => previous_dimension("all", rank, &size.to_string()),
    };
    let copied = |to: &str, from: &str, t: &dyn Fn(u64) -> String, f: &dyn Fn(u64) -> String| {
        let bounds = each_dimension(rank, |d| {
            format!(", i64 {}, i64 {}, i64 %n.{d}", t(d), f(d))
        });
        format!("  call void @{name}_copy(ptr {to}, ptr {from}{bounds})\n")
    };
    let own = |d: u64| format!("%t.{d}");
    let (straight, aside, back) = (
        copied("%old", "%source", &own, &apart),
        copied("%copy", "%source", &dense, &apart),
        copied("%old", "%copy", &own, &dense),
    );
    let aside = match spread {
        // The single element of a scalar source.
        true => element.text("%copy", "%source"),
        false => aside,
    };
    let begin = match spread {
        true => "  br label %keep\n".to_string(),
        false => reallocate_text(rank, size, &copied("%new", "%source", &dense, &apart)),
    };
    let (reach_to, reach_from) = (
        byte_range_text("to", rank, size, &own),
        byte_range_text("from", rank, size, &apart),
    );
    let (strides, copy) = (
        load_bounds_text(rank, "to", 2, "t"),
        copy_text(name, element, rank),
    );
    format!(
        "declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
{copy}
define void @{name}(ptr %to, ptr %from) {{
entry:
  %old = load ptr, ptr %to
  %source = load ptr, ptr %from
{shape}{sizes}  %bytes = call i64 @llvm.smax.i64(i64 {whole}, i64 1)
{begin}keep:
{strides}{reach_to}{reach_from}  %to.low = getelementptr i8, ptr %old, i64 %to.first
  %to.high = getelementptr i8, ptr %old, i64 %to.end
  %from.low = getelementptr i8, ptr %source, i64 %from.first
  %from.high = getelementptr i8, ptr %source, i64 %from.end
  %begins = icmp ult ptr %to.low, %from.high
  %reaches = icmp ult ptr %from.low, %to.high
  %meets = and i1 %begins, %reaches
  br i1 %meets, label %aside, label %straight
straight:
{straight}  ret void
aside:
  %copy = call ptr @malloc(i64 %bytes)
{aside}{back}  call void @free(ptr %copy)
  ret void
}}
"
    )
}

/// Text that computes the byte range of an array, from offset `first` to `end` relative to its address.
fn byte_range_text(side: &str, rank: u64, size: u64, stride: &dyn Fn(u64) -> String) -> String {
    let (first, far) = (format!("{side}.least"), format!("{side}.most"));
    let spans = each_dimension(rank, |d| {
        let (least, most, stride) = (
            previous_dimension(&first, d, "0"),
            previous_dimension(&far, d, "0"),
            stride(d),
        );
        format!(
            "  %{side}.last.{d} = sub i64 %n.{d}, 1
  %{side}.span.{d} = mul i64 %{side}.last.{d}, {stride}
  %{side}.down.{d} = call i64 @llvm.smin.i64(i64 %{side}.span.{d}, i64 0)
  %{side}.up.{d} = call i64 @llvm.smax.i64(i64 %{side}.span.{d}, i64 0)
  %{first}.{d} = add i64 {least}, %{side}.down.{d}
  %{far}.{d} = add i64 {most}, %{side}.up.{d}
"
        )
    });
    let (least, most) = (
        previous_dimension(&first, rank, "0"),
        previous_dimension(&far, rank, "0"),
    );
    format!(
        "{spans}  %{side}.first = add i64 {least}, 0
  %{side}.end = add i64 {most}, {size}
"
    )
}

/// Text that decides whether the variable is reallocated, and reallocates it.
fn reallocate_text(rank: u64, size: u64, filled: &str) -> String {
    let had = load_bounds_text(rank, "to", 1, "had");
    let fits = each_dimension(rank, |d| {
        let so_far = previous_dimension("fits", d, "%there");
        format!(
            "  %same.{d} = icmp eq i64 %had.{d}, %n.{d}\n  %fits.{d} = and i1 {so_far}, %same.{d}\n"
        )
    });
    let fits_at_all = previous_dimension("fits", rank, "%there");
    let lower = load_bounds_text(rank, "from", 0, "lower");
    let bounds = each_dimension(rank, |d| {
        let dense = previous_dimension("all", d, &size.to_string());
        let put = |member: u32, value: &str| {
            format!(
                "  %new.{member}.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 {member}
  store i64 {value}, ptr %new.{member}.{d}
"
            )
        };
        put(0, &format!("%lower.{d}")) + &put(1, &format!("%n.{d}")) + &put(2, &dense)
    });
    format!(
        "  %attribute.at = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 {ATTRIBUTE}
  %attribute = load i8, ptr %attribute.at
  %allocatable = icmp eq i8 %attribute, {ALLOCATABLE}
  %there = icmp ne ptr %old, null
{had}{fits}  %unfit = xor i1 {fits_at_all}, true
  %anew = and i1 %allocatable, %unfit
  br i1 %anew, label %fresh, label %keep
fresh:
  %new = call ptr @malloc(i64 %bytes)
{filled}  call void @free(ptr %old)
  store ptr %new, ptr %to
{lower}{bounds}  ret void
"
    )
}

/// Text of the function for `MOVE_ALLOC(from, to)`.
pub(super) fn move_text(name: &str, rank: u64) -> String {
    let moved = each_dimension(rank, |d| {
        let member = |member: u32| {
            format!(
                "  %get.{member}.{d} = getelementptr {DESCRIPTOR}, ptr %from, i32 0, i32 7, i64 {d}, i64 {member}
  %value.{member}.{d} = load i64, ptr %get.{member}.{d}
  %put.{member}.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 {member}
  store i64 %value.{member}.{d}, ptr %put.{member}.{d}
"
            )
        };
        (0..3).map(member).collect()
    });
    format!(
        "declare void @free(ptr)
declare void @abort()
define i32 @{name}(ptr %to, ptr %from) {{
entry:
  %same = icmp eq ptr %to, %from
  br i1 %same, label %wrong, label %move
wrong:
  call void @abort()
  unreachable
move:
  %old = load ptr, ptr %to
  call void @free(ptr %old)
  %block = load ptr, ptr %from
  store ptr %block, ptr %to
{moved}  store ptr null, ptr %from
  ret i32 0
}}
"
    )
}
