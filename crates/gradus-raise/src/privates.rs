//! Memory of a rank that the iterations of a shared loop use, and who may have it once they run at once.

use crate::fold::Reach;
use crate::openmp::ranks;
use crate::ranks_own::{self, Rank};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::known::{Known, MarkerFn};
use gradus_ir::{AllocaPlace, Body, Builder, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// An allocation that every iteration of a loop gets for itself.
#[derive(Debug)]
pub(crate) struct Own {
    alloca: Op,
}

impl Own {
    /// Makes the iterations of `op` use an allocation of their own.
    pub fn take_in(&self, unit: &mut Unit, body: &mut Body, op: Op) {
        let region = body.op_regions(op)[0];
        let inside: HashSet<Op> = body.walk(region).collect();
        let mut b = Builder::new(unit, body);
        if let Some(first) = b.body.first(region) {
            b.at_op(first);
        }
        let mut copies = ValueMap::new();
        for address in addresses(b.body, self.alloca) {
            let Some(made) = b.body.def_op(address) else {
                continue;
            };
            let copy = clone_op_within(made, &mut b, &mut copies);
            if let OpKind::Alloca(info) = &mut b.body.ops[copy].kind {
                info.place = AllocaPlace::Private;
            }
            let new = b.body.result(copy);
            let uses: Vec<_> = b.body.uses(address).collect();
            for at in uses.into_iter().filter(|u| inside.contains(&u.op)) {
                b.body.set_operand(at.op, at.index as usize, new);
            }
        }
    }
}

/// The address of an allocation, and those of its parts that are made outside of shared loops, where an
/// optimiser put them: each after what it is made of.
fn addresses(body: &Body, alloca: Op) -> Vec<Value> {
    let mut found = vec![body.result(alloca)];
    let mut next = 0;
    while let Some(&value) = found.get(next) {
        next += 1;
        let parts = body.uses(value).filter(|u| {
            u.index == 0 && matches!(body.kind(u.op), OpKind::Addr { .. }) && !in_shared(body, u.op)
        });
        found.extend(parts.map(|u| body.result(u.op)));
    }
    found
}

/// What uses an allocation, through its parts too.
fn users(body: &Body, alloca: Op) -> Vec<Op> {
    let addresses = addresses(body, alloca);
    let made: HashSet<Op> = addresses.iter().filter_map(|a| body.def_op(*a)).collect();
    let used = addresses.iter().flat_map(|a| body.uses(*a));
    used.map(|u| u.op).filter(|op| !made.contains(op)).collect()
}

/// The allocations of a team's region that each iteration of the shared loop `op` gets for itself;
/// `None` where iterations use one that they can neither share nor have each, or may come to something else
/// that is the rank's. `gathered` are those that a reduction takes care of.
pub(crate) fn own_memory(
    unit: &Unit,
    body: &Body,
    team: Region,
    op: Op,
    gathered: &HashSet<Op>,
    reach: &Reach,
) -> Option<Vec<Own>> {
    let region = body.op_regions(op)[0];
    let inside: HashSet<Op> = body.walk(region).collect();
    let mut own = Vec::new();
    let level = ranks_own::level(body, team);
    let mut slots = HashSet::new();
    for &alloca in &level {
        let OpKind::Alloca(info) = body.kind(alloca) else {
            continue;
        };
        if !gathered.contains(&alloca) && info.place != AllocaPlace::Shared {
            slots.insert(alloca);
        }
        let users = users(body, alloca);
        let here = users.iter().any(|u| inside.contains(u));
        if !here || gathered.contains(&alloca) || info.place == AllocaPlace::Shared {
            continue;
        }
        let one = body.as_int(unit, body.operand(alloca, 0)) == Some(1);
        let movable = one && body.parent(alloca) == Some(team);
        if movable && begins_anew(unit, body, region, alloca, &inside) {
            slots.remove(&alloca);
            own.push(Own { alloca });
        } else if !only_read(unit, body, alloca, &inside) {
            return None;
        }
    }
    let rank = Rank {
        unit,
        body,
        level: level.into_iter().collect(),
        slots,
        inside,
    };
    (!rank.may_be_changed(reach)).then_some(own)
}

/// Whether an iteration writes all of the allocation before anything else, or its life begins there, and
/// nobody outside of shared loops sees what it held.
fn begins_anew(unit: &Unit, body: &Body, region: Region, alloca: Op, inside: &HashSet<Op>) -> bool {
    let address = body.result(alloca);
    let OpKind::Alloca(info) = body.kind(alloca) else {
        return false;
    };
    let size = unit.layout.size_bytes(unit, info.ty);
    let users = users(body, alloca);
    let outside_is_quiet = users
        .iter()
        .all(|u| inside.contains(u) || marker(unit, body, *u).is_some() || in_shared(body, *u));
    if !outside_is_quiet {
        return false;
    }
    let users: HashSet<Op> = users.into_iter().collect();
    // The ops that use it, and those around them.
    let mut around = users.clone();
    for &user in users.iter().filter(|u| inside.contains(u)) {
        let outer = |op| body.parent(op).and_then(|r| body.owner(r));
        let mut at = outer(user);
        while let Some(op) = at.filter(|op| around.insert(*op)) {
            at = outer(op);
        }
    }
    // Where only one part of an iteration uses it, that part must begin it.
    let mut part = Some(region);
    while let Some(region) = part {
        let mut touched = body.ops_in(region).filter(|op| around.contains(op));
        let Some(first) = touched.next() else {
            return false;
        };
        part = match body.kind(first) {
            OpKind::Store(access) => {
                let bytes = unit
                    .layout
                    .store_bytes(unit, body.ty(body.operand(first, 0)));
                return access.is_plain() && body.operand(first, 1) == address && bytes >= size;
            }
            OpKind::Call(_) => return marker(unit, body, first) == Some(MarkerFn::LifetimeStart),
            _ if touched.next().is_some() || users.contains(&first) => return false,
            _ => {
                let used = |r: &&Region| body.ops_in(**r).any(|o| around.contains(&o));
                let mut regions = body.op_regions(first).iter().filter(used);
                let one = regions.next().copied();
                one.filter(|_| regions.next().is_none())
            }
        };
    }
    false
}

fn in_shared(body: &Body, op: Op) -> bool {
    let mut at = body.parent(op);
    while let Some(region) = at {
        let owner = body.owner(region);
        if owner.is_some_and(|o| matches!(body.kind(o), OpKind::ShareFor { .. })) {
            return true;
        }
        at = owner.and_then(|o| body.parent(o));
    }
    false
}

fn marker(unit: &Unit, body: &Body, op: Op) -> Option<MarkerFn> {
    match unit.known(unit.callee(body, op)?) {
        Some(Known::Marker(id)) => Some(id),
        _ => None,
    }
}

/// Whether iterations only read the allocation, through addresses that go nowhere.
fn only_read(unit: &Unit, body: &Body, alloca: Op, inside: &HashSet<Op>) -> bool {
    let mut open: Vec<Value> = vec![body.result(alloca)];
    while let Some(value) = open.pop() {
        for used in body.uses(value) {
            let op = used.op;
            match body.kind(op) {
                OpKind::Addr { .. } => open.push(body.result(op)),
                OpKind::Load(_) => {}
                _ if !inside.contains(&op) => match body.kind(op) {
                    OpKind::Store(_) if used.index == 1 => {}
                    OpKind::Call(_) if marker(unit, body, op).is_some() => {}
                    OpKind::Call(_) if ranks::asked(unit, body, op).is_none() => {}
                    _ => return false,
                },
                OpKind::Call(_) if marker(unit, body, op).is_some() => return false,
                _ => return false,
            }
        }
    }
    true
}
