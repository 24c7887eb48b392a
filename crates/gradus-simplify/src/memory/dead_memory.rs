//! Dead-memory elimination: erases local memory that no op reads, and its stores.
//!
//! Memory is unread if its address is used only by stores into the memory, fills, frees, lifetime intrinsics,
//! and loads whose values flow only into stores to the same memory. A value that is only updated is never
//! read; an example is a solver's solution array, updated in each iteration, in the gradient. The address may
//! be compared with null, because an unused allocation may be assumed to succeed. A parallel loop with no
//! other stores becomes empty, hence dead.

use gradus_analysis::PassContext;
use gradus_edit::{is_removable, remove_dead_defs};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, MemoryFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Builder, IntPredicate, Op, OpKind, Unit, Use, Value};
use std::collections::HashSet;

/// Maximum number of values inspected to follow loaded values.
const VALUES_MAX: usize = 4096;

/// Erases memory that no op reads, and its stores.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let made: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| is_removable_allocation(unit, body, op))
        .collect();
    let mut changed = false;
    // Reverse order, because values stored to one block may be the only uses of an earlier block.
    for op in made.into_iter().rev() {
        if let Some(users) = MemoryUsers::of(unit, body, op) {
            users.remove(unit, body);
            if !is_planted(Mutant::UpdatedReadElsewhere) {
                body.erase(op);
            }
            changed = true;
        }
    }
    changed
}

/// Returns whether a body allocates memory that may be unread.
pub fn allocates_memory(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root())
        .any(|op| is_removable_allocation(unit, body, op))
}

/// Erases unread memory after dead-code elimination; returns the number of passes that changed the body.
pub fn remove_dead_memory(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> usize {
    let dead = crate::scalar::dce::run(unit, body, facts);
    let unread = run(unit, body, facts);
    let more = unread && crate::scalar::dce::run(unit, body, facts);
    [dead, unread, more]
        .into_iter()
        .filter(|done| *done)
        .count()
}

fn is_removable_allocation(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Alloca(info) => !info.inalloca,
        OpKind::Call(_) => match unit.known_callee(body, op) {
            Some(ExternalFn::Memory(MemoryFn::Malloc | MemoryFn::Calloc)) => true,
            // With an invalid alignment the allocation fails.
            Some(ExternalFn::Memory(MemoryFn::AlignedAlloc)) => {
                let align_bytes = body.as_int(unit, unit.call_args(body, op)[0]);
                align_bytes
                    .is_some_and(|bytes| u64::try_from(bytes).is_ok_and(u64::is_power_of_two))
            }
            _ => false,
        },
        _ => false,
    }
}

/// All uses of unread memory.
#[derive(Default)]
struct MemoryUsers {
    /// Ops that write or free the memory, or mark its lifetime.
    writers: Vec<Op>,
    /// Addresses into the memory, and values loaded and computed only for the writers.
    values: Vec<Value>,
    /// Comparisons of the address with null.
    tests: Vec<Op>,
}

impl MemoryUsers {
    /// Collects the uses of the memory allocated by `op`. Returns `None` if a use may read the memory for
    /// another purpose or lets the address escape.
    fn of(unit: &Unit, body: &Body, op: Op) -> Option<MemoryUsers> {
        let start = body.result(op);
        let (mut users, mut seen) = (MemoryUsers::default(), HashSet::from([op]));
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
                        let own = fills_or_frees(unit, body, used);
                        own.then(|| users.writers.extend(is_new.then_some(used.op)))?;
                    }
                    OpKind::ICmp(IntPredicate::Eq | IntPredicate::Ne) if address == start => {
                        body.is_null(unit, body.operand(used.op, 1)).then_some(())?;
                        users.tests.push(used.op);
                    }
                    _ => return None,
                }
                users.values.extend(body.results(used.op));
            }
        }
        users.flow_only_to_writers(unit, body, read)?;
        Some(users)
    }

    /// Follows loaded values; all results must flow into stores to the same memory.
    fn flow_only_to_writers(
        &mut self,
        unit: &Unit,
        body: &Body,
        mut open: Vec<Value>,
    ) -> Option<()> {
        let writers: HashSet<Op> = self.writers.iter().copied().collect();
        let mut seen: HashSet<Value> = open.iter().copied().collect();
        while let Some(value) = open.pop() {
            for used in body.uses(value) {
                match body.kind(used.op) {
                    OpKind::Store(_) if used.index == 0 => {
                        let elsewhere = is_planted(Mutant::UpdatedReadElsewhere);
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
            (seen.len() <= VALUES_MAX).then_some(())?;
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
        remove_dead_defs(unit, body, self.values);
    }
}

/// Returns whether a call with the address as the given operand fills or frees the memory or marks its
/// lifetime.
fn fills_or_frees(unit: &Unit, body: &Body, used: Use) -> bool {
    let unused = body.results(used.op).iter().all(|v| !body.has_uses(*v));
    let own = match unit.known_callee(body, used.op) {
        Some(ExternalFn::Memory(MemoryFn::Free | MemoryFn::MemsetIntrinsic)) => used.index == 1,
        Some(ExternalFn::Marker(
            CompilerIntrinsic::LifetimeStart | CompilerIntrinsic::LifetimeEnd,
        )) => true,
        _ => false,
    };
    own && unused
}
