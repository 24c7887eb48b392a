//! Value copies: the operands that an op copies unchanged to results and region parameters, through
//! structure ops, select and freeze.
//!
//! A single table for every analysis that propagates along values. A new structure op is added here alone.

use gradus_ir::{Body, Op, OpKind, Value};

/// Visits the copies of `op` as (source, destination). A yield counts for the op that owns the region. Trip
/// counts, loop indices and calls are not copies.
pub fn value_copies(body: &Body, op: Op, mut copy: impl FnMut(Value, Value)) {
    match body.kind(op) {
        OpKind::Select => {
            copy(body.operand(op, 1), body.result(op));
            copy(body.operand(op, 2), body.result(op));
        }
        OpKind::Freeze => copy(body.operand(op, 0), body.result(op)),
        OpKind::If
        | OpKind::Switch(_)
        | OpKind::Invoke(_)
        | OpKind::Scope
        | OpKind::Single { .. }
        | OpKind::Critical(_) => {
            if let OpKind::Single { .. } = body.kind(op) {
                for (value, &result) in body.operands(op).zip(body.results(op)) {
                    copy(value, result);
                }
            }
            for &region in body.op_regions(op) {
                yields(body, body.last(region), 0, body.results(op), &mut copy);
            }
        }
        OpKind::Loop { .. } => {
            let region = body.op_regions(op)[0];
            let params = body.region_params(region);
            for (value, &param) in body.operands(op).zip(params) {
                copy(value, param);
            }
            let Some(end) = body.last(region) else {
                unreachable!("a verified region has a terminator");
            };
            if matches!(body.kind(end), OpKind::Repeat) {
                let again = body.operands(end).skip(1);
                for (value, &to) in again.zip(params.iter().chain(body.results(op))) {
                    copy(value, to);
                }
            }
        }
        OpKind::For { .. } => {
            let region = body.op_regions(op)[0];
            let carried = body.region_params(region).get(1..).unwrap_or(&[]);
            for ((value, &param), &result) in
                body.operands(op).skip(1).zip(carried).zip(body.results(op))
            {
                copy(value, param);
                copy(value, result);
            }
            yields(body, body.last(region), 0, carried, &mut copy);
            yields(body, body.last(region), 0, body.results(op), &mut copy);
        }
        OpKind::ParFor { dims, .. } => {
            let initial = body.operands(op).skip(*dims as usize);
            for (value, &result) in initial.zip(body.results(op)) {
                copy(value, result);
            }
            let region = body.op_regions(op)[0];
            yields(body, body.last(region), 0, body.results(op), &mut copy);
        }
        _ => {}
    }
}

fn yields(
    body: &Body,
    end: Option<Op>,
    skip: usize,
    to: &[Value],
    copy: &mut impl FnMut(Value, Value),
) {
    let Some(end) = end else {
        unreachable!("a verified region has a terminator");
    };
    if matches!(body.kind(end), OpKind::Yield) {
        for (value, &to) in body.operands(end).skip(skip).zip(to) {
            copy(value, to);
        }
    }
}
