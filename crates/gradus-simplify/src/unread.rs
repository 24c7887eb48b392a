//! Memory of the body's own that nobody reads: what is written there goes, and the memory with it.
//!
//! It is seen to be unread where its address is used for nothing but stores into it, fills, frees, marks of
//! its life, and loads of which nothing is made but what is stored into it again: a sum that is only updated
//! is not read by anyone. (A solution that a solver updates in each iteration, in its gradient.) Its address
//! may be compared with null: memory that is not asked for is there. A parallel loop that only wrote there is
//! then empty, and dead.

use crate::Facts;
use gradus_edit::{is_removable, sweep_from};
use gradus_ir::known::{Known, MarkerFn, MemoryFn};
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{Body, Builder, ConstKind, IntPredicate, Op, OpKind, Unit, Use, Value};
use std::collections::HashSet;

/// How many ops are looked at to see what becomes of what is loaded.
const OPS: usize = 4096;

/// Removes what is written to memory that nobody reads.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    let made: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| is_made(unit, body, op))
        .collect();
    let mut changed = false;
    // What is computed for one of them may be all that reads another one, most often an earlier one.
    for op in made.into_iter().rev() {
        if let Some(users) = Users::of(unit, body, op) {
            users.remove(unit, body);
            if !planted(Mutant::UpdatedReadElsewhere) {
                body.erase(op);
            }
            changed = true;
        }
    }
    changed
}

/// Whether a body makes memory that may turn out to be unread.
pub fn makes_memory(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root()).any(|op| is_made(unit, body, op))
}

/// Removes memory that nobody reads once what nobody uses is gone; gives the number of passes that changed
/// anything.
pub fn unread(unit: &mut Unit, body: &mut Body, facts: &Facts) -> usize {
    let dead = crate::dce::run(unit, body, facts);
    let unread = run(unit, body, facts);
    let more = unread && crate::dce::run(unit, body, facts);
    [dead, unread, more]
        .into_iter()
        .filter(|done| *done)
        .count()
}

fn is_made(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Alloca(info) => !info.inalloca,
        OpKind::Call(_) => match known(unit, body, op) {
            Some(Known::Memory(MemoryFn::Malloc | MemoryFn::Calloc)) => true,
            // With an alignment that is none there is no memory.
            Some(Known::Memory(MemoryFn::AlignedAlloc)) => {
                let align_bytes = body.as_int(unit, unit.call_args(body, op)[0]);
                align_bytes
                    .is_some_and(|bytes| u64::try_from(bytes).is_ok_and(u64::is_power_of_two))
            }
            _ => false,
        },
        _ => false,
    }
}

fn known(unit: &Unit, body: &Body, op: Op) -> Option<Known> {
    unit.known(unit.callee(body, op)?)
}

/// All that uses memory which nobody reads.
#[derive(Default)]
struct Users {
    /// What writes it, frees it or marks its life.
    writers: Vec<Op>,
    /// Its addresses, and what is loaded and computed for the writers alone.
    values: Vec<Value>,
    /// Comparisons of its address with null.
    tests: Vec<Op>,
}

impl Users {
    /// What uses the memory made by `op`; `None` where one of them may read it for something else or hand
    /// its address on.
    fn of(unit: &Unit, body: &Body, op: Op) -> Option<Users> {
        let start = body.result(op);
        let (mut users, mut seen) = (Users::default(), HashSet::from([op]));
        let (mut addresses, mut read) = (vec![start], Vec::new());
        while let Some(address) = addresses.pop() {
            for used in body.uses(address) {
                let is_new = seen.insert(used.op);
                match body.kind(used.op) {
                    OpKind::Addr { .. } if used.index == 0 => addresses.push(body.result(used.op)),
                    OpKind::Load(access) if access.is_plain() => read.push(body.result(used.op)),
                    OpKind::Store(access) if used.index == 1 && access.is_plain() => {
                        users.writers.extend(is_new.then_some(used.op));
                    }
                    OpKind::Call(info) if info.bundles.is_empty() => {
                        let own = fills_or_ends(unit, body, used);
                        own.then(|| users.writers.extend(is_new.then_some(used.op)))?;
                    }
                    OpKind::ICmp(IntPredicate::Eq | IntPredicate::Ne) if address == start => {
                        is_null(unit, body.operand(used.op, 1), body).then_some(())?;
                        users.tests.push(used.op);
                    }
                    _ => return None,
                }
                users.values.extend(body.results(used.op));
            }
        }
        users.only_for_writers(unit, body, read)?;
        Some(users)
    }

    /// Follows what is loaded: all that is made of it goes into the same memory.
    fn only_for_writers(&mut self, unit: &Unit, body: &Body, mut open: Vec<Value>) -> Option<()> {
        let writers: HashSet<Op> = self.writers.iter().copied().collect();
        let mut seen: HashSet<Value> = open.iter().copied().collect();
        while let Some(value) = open.pop() {
            for used in body.uses(value) {
                match body.kind(used.op) {
                    OpKind::Store(_) if used.index == 0 => {
                        let elsewhere = planted(Mutant::UpdatedReadElsewhere);
                        (writers.contains(&used.op) || elsewhere).then_some(())?;
                    }
                    _ => {
                        let plain = body.op_regions(used.op).is_empty()
                            && !body.results(used.op).is_empty()
                            && !body.kind(used.op).is_terminator()
                            && is_removable(unit, body, used.op);
                        plain.then_some(())?;
                        let new = body.results(used.op).iter().filter(|v| seen.insert(**v));
                        open.extend(new);
                    }
                }
            }
            (seen.len() <= OPS).then_some(())?;
        }
        self.values.extend(seen);
        Some(())
    }

    fn remove(self, unit: &mut Unit, body: &mut Body) {
        for test in self.tests {
            let result = body.result(test);
            let unequal = matches!(body.kind(test), OpKind::ICmp(IntPredicate::Ne));
            let ty = body.ty(result);
            let known = Builder::new(unit, body).int(ty, i128::from(unequal));
            body.replace_uses(result, known);
        }
        for writer in self.writers {
            body.erase(writer);
        }
        sweep_from(unit, body, self.values);
    }
}

fn is_null(unit: &Unit, value: Value, body: &Body) -> bool {
    let id = body.as_const(value);
    id.is_some_and(|id| unit.constant(id).kind == ConstKind::Zero)
}

/// Whether a call that gets the address as this operand fills the memory, frees it or marks its life.
fn fills_or_ends(unit: &Unit, body: &Body, used: Use) -> bool {
    let unused = body.results(used.op).iter().all(|v| !body.has_uses(*v));
    let own = match known(unit, body, used.op) {
        Some(Known::Memory(MemoryFn::Free | MemoryFn::MemsetIntrinsic)) => used.index == 1,
        Some(Known::Marker(MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd)) => true,
        _ => false,
    };
    own && unused
}
