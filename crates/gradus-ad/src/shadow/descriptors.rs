//! Run-time check of Fortran array descriptors: the shadow of an array must have the strides of the array.
//!
//! A derivative indexes a shadow with the strides of the array's own descriptor. A caller may pass a section
//! as an assumed-shape array, and another section as the shadow. The derivative therefore begins by comparing
//! both descriptors, dimension by dimension, and ends the program on a mismatch. The comparison covers only
//! dimensions whose stride the function reads. The layout is flang's `CFI_cdesc_t`: three 64-bit fields per
//! dimension.

use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use crate::emit::stop_message::stop_message;
use crate::shadow::indirect_calls;
use crate::variant::{Mode, ParamRole, Signature, Variant};
use gradus_ir::{BinaryOp, Body, CastOp, Code, FuncId, IntPredicate, Op, OpKind, Unit, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// flang's TBAA name for descriptor members.
const DESCRIPTOR_MEMBER_TAG: &str = "descriptor member";
/// Offset of the first dimension.
const FIRST_DIMENSION_OFFSET_BYTES: i64 = 24;
/// Size of a dimension.
const DIMENSION_BYTES: i64 = 24;
/// Offsets of the extent and the stride within a dimension.
const EXTENT_BYTES: i64 = 8;
const STRIDE_BYTES: i64 = 16;

/// Compares the descriptor of each argument that has a shadow with the descriptor of the shadow.
pub(crate) fn compare(
    out: &mut DerivativeBuilder<'_>,
    variant: &Variant,
    signature: &Signature,
    body: &Body,
) {
    if !variant.outermost || variant.mode == Mode::Reverse {
        return;
    }
    let (mut own, mut shadows) = (BTreeMap::new(), Vec::new());
    for ((role, ty), &param) in signature.params.iter().zip(out.body.params()) {
        match *role {
            ParamRole::Primal(number) if out.unit.types.is_ptr(*ty) => {
                own.insert(number, param);
            }
            ParamRole::Shadow(number, _) if out.unit.types.is_ptr(*ty) => {
                shadows.push((number, param));
            }
            _ => {}
        }
    }
    for (number, shadow) in shadows {
        let Some(&array) = own.get(&number) else {
            continue;
        };
        let dimensions = read_stride_dimensions(out.unit, body, number);
        if !dimensions.is_empty() {
            let fine = descriptors_agree(out, [array, shadow], &dimensions);
            stop_unless_strides_agree(out, fine, variant, number);
        }
    }
}

/// Returns the dimensions of a parameter's array whose strides are read by the function, or by a callee that
/// receives the descriptor.
fn read_stride_dimensions(unit: &Unit, body: &Body, number: usize) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut work: Vec<(Option<FuncId>, usize)> = vec![(None, number)];
    while let Some((func, number)) = work.pop() {
        let inner = func.map_or(Some(body), |func| unit.functions[func].body.as_deref());
        let start = inner.and_then(|body| body.params().get(number).copied());
        let (Some(body), Some(start)) = (inner, start.filter(|_| seen.insert((func, number))))
        else {
            continue;
        };
        let mut places = vec![(start, 0)];
        while let Some((place, offset_bytes)) = places.pop() {
            for at in body.uses(place) {
                match body.kind(at.op) {
                    OpKind::Load(_) if is_descriptor_member(unit, body, at.op) => {
                        let inside = offset_bytes - FIRST_DIMENSION_OFFSET_BYTES;
                        if inside.rem_euclid(DIMENSION_BYTES) == STRIDE_BYTES {
                            found.insert(inside.div_euclid(DIMENSION_BYTES));
                        }
                    }
                    OpKind::Addr { .. } if at.index == 0 => {
                        let moved = constant_offset_bytes(unit, body, at.op);
                        let result = body.result(at.op);
                        places.extend(moved.map(|bytes| (result, offset_bytes + bytes)));
                    }
                    kind if kind.call_info().is_some() && offset_bytes == 0 => {
                        let callee = unit.callee(body, at.op);
                        let args = unit.call_args(body, at.op);
                        let handed = args.iter().enumerate().filter(|(_, arg)| **arg == place);
                        work.extend(handed.filter_map(|(k, _)| Some((Some(callee?), k))));
                    }
                    _ => {}
                }
            }
        }
    }
    found.retain(|dimension| *dimension >= 0);
    found
}

fn is_descriptor_member(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    let integer = unit.types.int_bits(body.ty(body.result(op))).is_some();
    integer && tag.is_some_and(|tag| unit.tbaa_types[tag.access].name == DESCRIPTOR_MEMBER_TAG)
}

/// Returns the constant offset in bytes of an address computation; `None` if the offset is not constant.
fn constant_offset_bytes(unit: &Unit, body: &Body, op: Op) -> Option<i64> {
    let address = unit.layout.address(unit, body, op)?;
    let single = address.terms.is_empty() && address.base == body.operand(op, 0);
    single.then_some(address.offset)
}

/// Builds the condition for a valid shadow: the array is absent, or the shadow has equal strides and at least
/// equal extents. The stride of a dimension with at most one element is ignored.
fn descriptors_agree(
    out: &mut DerivativeBuilder<'_>,
    [array, shadow]: [Value; 2],
    dimensions: &BTreeSet<i64>,
) -> Value {
    let (ptr, long) = (out.unit.types.ptr(), out.unit.types.int(64));
    let start = out.load(ptr, array, MemorySpace::Primal, None);
    let start = out.build().cast(CastOp::PtrToInt, start, long);
    let zero = out.build().i64(0);
    let absent = out.build().icmp(IntPredicate::Eq, start, zero);
    let mut all = out.build().bool(true);
    for dimension in dimensions {
        let at = FIRST_DIMENSION_OFFSET_BYTES + dimension * DIMENSION_BYTES;
        let [extent, extent_of_shadow] = load_from_both(out, [array, shadow], at + EXTENT_BYTES);
        let [stride, stride_of_shadow] = load_from_both(out, [array, shadow], at + STRIDE_BYTES);
        let mut b = out.build();
        let two = b.i64(2);
        let short = b.icmp(IntPredicate::Slt, extent, two);
        let same = b.icmp(IntPredicate::Eq, stride, stride_of_shadow);
        let steps = b.binary(BinaryOp::Or, short, same);
        let long_enough = b.icmp(IntPredicate::Sle, extent, extent_of_shadow);
        let fine = b.binary(BinaryOp::And, steps, long_enough);
        all = b.binary(BinaryOp::And, all, fine);
    }
    out.build().binary(BinaryOp::Or, absent, all)
}

/// Loads the 64-bit field at `at_bytes` from both descriptors.
fn load_from_both(
    out: &mut DerivativeBuilder<'_>,
    descriptors: [Value; 2],
    at_bytes: i64,
) -> [Value; 2] {
    let long = out.unit.types.int(64);
    let spaces = [MemorySpace::Primal, MemorySpace::Shadow];
    [0, 1].map(|k| {
        let bytes = out.build().i64(at_bytes);
        let place = out.build().byte_addr(descriptors[k], bytes);
        out.load(long, place, spaces[k], None)
    })
}

/// Ends the program with a message unless `fine` holds.
fn stop_unless_strides_agree(
    out: &mut DerivativeBuilder<'_>,
    fine: Value,
    variant: &Variant,
    number: usize,
) {
    let function = &out.unit.functions[variant.func];
    let name = function.param_names.get(number).cloned().flatten();
    let name = name.unwrap_or_else(|| format!("argument {}", number + 1));
    let function = function.display_name();
    let text = format!(
        "at the start of the derivative of `{function}`, the shadow of `{name}` has fewer elements than `{name}`, or \
         different strides"
    );
    indirect_calls::stop_unless(out, fine, &stop_message(Code::BadRequest, &text));
}
