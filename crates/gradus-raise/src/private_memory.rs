//! Private memory of a rank used by iterations of a worksharing loop: privatisation to iterations once
//! iterations run concurrently.

use crate::capture::may_capture;
use crate::definite_assignment::is_written_first;
use crate::reach::Reach;
use crate::report::{RaiseResult, reason};
use crate::thread_private;
use crate::thread_private::RankAndLoop;
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{AllocaStorage, Body, Builder, Op, OpKind, Region, Type, Unit, Value};
use std::collections::HashSet;

/// An allocation privatised to every iteration of a loop.
#[derive(Debug)]
pub(crate) struct PrivateSlot {
    alloca: Op,
}

impl PrivateSlot {
    /// Gives every iteration of `op` a private clone of the allocation.
    pub fn take_in(&self, unit: &mut Unit, body: &mut Body, op: Op) {
        let region = body.op_regions(op)[0];
        let inside: HashSet<Op> = body.walk(region).collect();
        let mut b = Builder::new(unit, body);
        if let Some(first) = b.body.first(region) {
            b.set_insertion_before(first);
        }
        let mut copies = ValueMap::new();
        for address in derived_addresses(b.body, self.alloca) {
            let Some(made) = b.body.def_op(address) else {
                continue;
            };
            let copy = clone_op_within(made, &mut b, &mut copies);
            if let OpKind::Alloca(info) = &mut b.body.ops[copy].kind {
                info.storage = AllocaStorage::Private;
            }
            let new = b.body.result(copy);
            let uses: Vec<_> = b.body.uses(address).collect();
            for at in uses.into_iter().filter(|u| inside.contains(&u.op)) {
                b.body.set_operand(at.op, at.index as usize, new);
            }
        }
    }
}

/// Returns the address of an allocation, and derived addresses that an optimiser hoisted out of worksharing
/// loops, in definition order.
fn derived_addresses(body: &Body, alloca: Op) -> Vec<Value> {
    let mut found = vec![body.result(alloca)];
    let mut next = 0;
    while let Some(&value) = found.get(next) {
        next += 1;
        let parts = body.uses(value).filter(|u| {
            u.index == 0
                && matches!(body.kind(u.op), OpKind::Addr { .. })
                && outermost_share_for(body, u.op).is_none()
        });
        found.extend(parts.map(|u| body.result(u.op)));
    }
    found
}

/// Returns the users of an allocation, including users of derived addresses.
fn users(body: &Body, alloca: Op) -> Vec<Op> {
    let addresses = derived_addresses(body, alloca);
    let made: HashSet<Op> = addresses.iter().filter_map(|a| body.def_op(*a)).collect();
    let used = addresses.iter().flat_map(|a| body.uses(*a));
    used.map(|u| u.op).filter(|op| !made.contains(op)).collect()
}

/// Returns the allocations of a team's region to privatise to the iterations of the worksharing loop `op`.
/// Otherwise returns the reason: iterations can neither share nor privatise an allocation, or may reach other
/// private memory of the rank.
///
/// `gathered` are the slots of reductions. `any_number` is true if the program may run with any number of
/// ranks.
pub(crate) fn slots_to_privatize(
    unit: &Unit,
    body: &Body,
    team: Region,
    op: Op,
    gathered: &HashSet<Op>,
    any_number: bool,
    reach: &Reach,
) -> RaiseResult<Vec<PrivateSlot>> {
    let region = body.op_regions(op)[0];
    let inside: HashSet<Op> = body.walk(region).collect();
    let mut own = Vec::new();
    let level = thread_private::rank_ops(body, team);
    let is_all = is_only_work_of_rank(unit, body, &level, op);
    let mut slots = HashSet::new();
    for &alloca in &level {
        let OpKind::Alloca(info) = body.kind(alloca) else {
            continue;
        };
        if !gathered.contains(&alloca) && info.storage != AllocaStorage::Shared {
            slots.insert(alloca);
        }
        let users = users(body, alloca);
        let here = users.iter().any(|u| inside.contains(u));
        if !here || gathered.contains(&alloca) || info.storage == AllocaStorage::Shared {
            continue;
        }
        let one = body.as_int(unit, body.operand(alloca, 0)) == Some(1);
        if one && body.parent(alloca) == Some(team) {
            let is_array = matches!(unit.types.get(info.ty), Type::Array { .. });
            let fresh = is_array && any_number && is_used_by_one_loop(unit, body, team, alloca, op);
            let kept = body
                .walk(region)
                .find(|u| may_capture_slot(unit, body, alloca, *u));
            if let Some(op) = kept.filter(|_| !is_all) {
                let text = "the address of thread-private memory may escape";
                return Err(reason(unit, body, op, text));
            }
            match check_initialized_first(unit, body, alloca, op) {
                begun if fresh || begun.is_ok() => {
                    slots.remove(&alloca);
                    own.push(PrivateSlot { alloca });
                    continue;
                }
                Err(why) if !is_only_read(unit, body, alloca, &inside) => return Err(why),
                _ => continue,
            }
        }
        if !is_only_read(unit, body, alloca, &inside) {
            let text = "iterations write thread-private memory of variable size";
            return Err(reason(unit, body, alloca, text));
        }
    }
    let rank = RankAndLoop {
        unit,
        body,
        level: level.into_iter().collect(),
        slots,
        inside,
    };
    match rank.may_modify_private_memory(reach) {
        false => Ok(own),
        true => {
            let text = "iterations may modify memory that the thread allocates or reaches through private pointers";
            Err(reason(unit, body, op, text))
        }
    }
}

/// Returns true if the worksharing loop `op`, executed once, is the rank's only code with effects.
fn is_only_work_of_rank(unit: &Unit, body: &Body, level: &[Op], op: Op) -> bool {
    level.iter().all(|&other| match body.kind(other) {
        OpKind::ShareFor { .. } => other == op,
        OpKind::Loop { .. } | OpKind::For { .. } => false,
        kind if kind.call_info().is_some() => unit
            .callee(body, other)
            .is_some_and(|func| unit.known(func).is_some()),
        kind => !kind.is_strand_op() && !matches!(kind, OpKind::Single { .. }),
    })
}

/// Returns true if `op` stores an address within the allocation, or is a call that may capture one.
fn may_capture_slot(unit: &Unit, body: &Body, alloca: Op, op: Op) -> bool {
    let is_in = |value: Value| body.def_op(body.address_base(value)) == Some(alloca);
    match body.kind(op) {
        OpKind::Store(_) => is_in(body.operand(op, 0)),
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let args = unit.call_args(body, op).into_iter().enumerate();
            let mut given = args.filter(|(_, arg)| is_in(*arg));
            given.any(|(index, _)| may_capture(unit, body, op, index))
        }
        _ => false,
    }
}

/// Returns true if only iterations of the worksharing loop `op`, executed once per rank, use the allocation.
///
/// With as many ranks as iterations, or chunks, no iteration observes another's values, hence the contents are
/// irrelevant for any number of ranks: the program must not depend on the number. The argument is used for
/// arrays only, which loops fill. Some programs reuse a value left in a scalar (Rodinia's hotspot) and match
/// the serial result on one thread only.
fn is_used_by_one_loop(unit: &Unit, body: &Body, team: Region, alloca: Op, op: Op) -> bool {
    let is_inside = |user: &Op| outermost_share_for(body, *user) == Some(op);
    let mut users = users(body, alloca).into_iter();
    let mut owners = body
        .ancestors(op)
        .take_while(|owner| Some(*owner) != body.owner(team));
    users.all(|user| is_inside(&user) || unit.marker_callee(body, user).is_some())
        && owners.all(|owner| matches!(body.kind(owner), OpKind::If | OpKind::Switch(_)))
}

/// Checks that iterations of worksharing loops write each byte of the allocation before any read, or start its
/// lifetime, and that no code outside of worksharing loops observes the contents. `op` is one of the loops.
fn check_initialized_first(unit: &Unit, body: &Body, alloca: Op, op: Op) -> RaiseResult {
    let mut loops = vec![op];
    for user in users(body, alloca) {
        match outermost_share_for(body, user) {
            Some(around) if loops.contains(&around) => {}
            Some(around) => loops.push(around),
            None if unit.marker_callee(body, user).is_some() => {}
            None => {
                let text = "thread-private memory is used both here and in loop iterations";
                return Err(reason(unit, body, user, text));
            }
        }
    }
    let addresses = derived_addresses(body, alloca);
    let mut regions = loops.iter().map(|lp| body.op_regions(*lp)[0]);
    regions.try_for_each(|region| is_written_first(unit, body, region, alloca, &addresses))
}

/// Returns the outermost worksharing loop around `op`.
fn outermost_share_for(body: &Body, op: Op) -> Option<Op> {
    let is_shared = |at: &Op| matches!(body.kind(*at), OpKind::ShareFor { .. });
    body.ancestors(op).filter(is_shared).last()
}

/// Returns true if iterations only read the allocation, through addresses that do not escape.
fn is_only_read(unit: &Unit, body: &Body, alloca: Op, inside: &HashSet<Op>) -> bool {
    let mut open: Vec<Value> = vec![body.result(alloca)];
    while let Some(value) = open.pop() {
        for used in body.uses(value) {
            let op = used.op;
            match body.kind(op) {
                OpKind::Addr { .. } => open.push(body.result(op)),
                OpKind::Load(_) => {}
                _ if !inside.contains(&op) => match body.kind(op) {
                    OpKind::Store(_) if used.index == 1 => {}
                    OpKind::Call(_) if unit.marker_callee(body, op).is_some() => {}
                    OpKind::Call(_) if unit.openmp_callee(body, op).is_none() => {}
                    _ => return false,
                },
                OpKind::Call(_) if unit.marker_callee(body, op).is_some() => return false,
                _ => return false,
            }
        }
    }
    true
}
