//! Load forwarding: replaces loads of known contents and repeated read-only calls.
//!
//! One walk maintains a short list of known memory contents. Alias analysis drops entries at loop entry and
//! after each op that may clobber their memory; entries added in an arm end with the arm. The list is
//! bounded, hence the pass is linear.
//!
//! Across tasks and parallel loops the walk follows the serial projection. Concurrent accesses do not
//! conflict, hence the memory that a task may change counts as clobbered at its spawn, and a sync clobbers
//! nothing more.

use crate::control::read_only_regions;
use crate::memory::errno;
use crate::memory::errno::Errno;
use gradus_analysis::{
    AccessKind, Alias, Clobbers, ExitClobbers, MemoryAccess, PassContext, is_loop,
};
use gradus_edit::remove_dead_defs;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Builder, CastOp, Op, OpKind, Type, TypeId, Unit, Value};

/// Maximum number of known entries.
const ENTRIES_MAX: usize = 48;

/// Replaces loads and calls with known results.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    let found = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
        let mut walk = Walk {
            unit,
            body,
            facts,
            alias: &alias,
            errno: Errno::of(unit, body, facts, &alias),
            clobbers: &clobbers,
            found: Vec::new(),
        };
        walk.run();
        walk.found
    };
    let changed = !found.is_empty();
    // In program order; a replaced value maps to its replacement.
    let mut now = std::collections::HashMap::new();
    for (load, value) in found {
        let mut value = *now.get(&value).unwrap_or(&value);
        let result = body.result(load);
        if body.ty(value) != body.ty(result) {
            let (ty, loc) = (body.ty(result), body.ops[load].loc);
            let mut b = Builder::new(unit, body);
            b.loc = loc;
            b.set_insertion_before(load);
            value = b.cast(CastOp::BitCast, value, ty);
        }
        now.insert(result, value);
        body.replace_uses(result, value);
        match body.kind(load) {
            OpKind::Call(_) => body.erase(load),
            _ => {
                remove_dead_defs(unit, body, [result]);
            }
        }
    }
    changed
}

/// Known result of an op.
#[derive(Clone)]
struct KnownValue {
    source: Source,
    value: Value,
    /// Memory that the op would read.
    reads: Vec<MemoryAccess>,
    /// True if the op would also set `errno`.
    sets_errno: bool,
}

/// Op that yields a known value.
#[derive(Clone, PartialEq, Eq)]
enum Source {
    /// Load from the address.
    Load(Value),
    /// Call of a function (operand 0) with arguments.
    Call(Vec<Value>),
}

struct Walk<'a> {
    unit: &'a Unit,
    body: &'a Body,
    facts: &'a PassContext<'a>,
    alias: &'a Alias<'a>,
    errno: Errno,
    clobbers: &'a Clobbers<'a>,
    found: Vec<(Op, Value)>,
}

/// Region on the walk's stack: the next op, and the entries known before.
struct OpenRegion {
    next: Option<Op>,
    known: Vec<KnownValue>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut open = vec![OpenRegion {
            next: self.body.first(self.body.root()),
            known: Vec::new(),
        }];
        while let Some(top) = open.last_mut() {
            let Some(op) = top.next else {
                open.pop();
                continue;
            };
            top.next = self.body.next(op);
            let regions = self.body.op_regions(op);
            if regions.is_empty() {
                self.visit_op(op, &mut top.known);
                continue;
            }
            let kind = self.body.kind(op);
            let opaque = kind.is_parallel() && !self.uses_serial_projection(kind);
            let inside: Vec<KnownValue> = if opaque {
                Vec::new()
            } else if is_loop(kind) {
                self.unclobbered(&top.known, op)
            } else {
                top.known.clone()
            };
            top.known = if opaque {
                Vec::new()
            } else {
                self.unclobbered(&top.known, op)
            };
            let invoke = matches!(kind, OpKind::Invoke(_));
            for &region in regions.iter().rev() {
                // The call of an invoke executes before its regions.
                let known = if invoke { Vec::new() } else { inside.clone() };
                open.push(OpenRegion {
                    next: self.body.first(region),
                    known,
                });
            }
        }
    }

    /// Returns whether the walk treats a parallel op as its serial projection.
    fn uses_serial_projection(&self, kind: &OpKind) -> bool {
        use OpKind::{ParFor, Scope, Spawn, Sync};
        self.facts.alias.race_free && matches!(kind, ParFor { .. } | Scope | Spawn { .. } | Sync)
    }

    /// Returns the entries of `known` that `op` and its nested ops cannot clobber.
    fn unclobbered(&self, known: &[KnownValue], op: Op) -> Vec<KnownValue> {
        let past = is_planted(Mutant::ForwardedPastStores);
        let stays = |read: &MemoryAccess| past || !self.clobbers.clobbered_in(read, op);
        let errno_stays = !self.errno.is_clobbered_in(self.alias, op);
        let stays = |e: &&KnownValue| e.reads.iter().all(stays) && (errno_stays || !e.sets_errno);
        known.iter().filter(stays).cloned().collect()
    }

    fn visit_op(&mut self, op: Op, known: &mut Vec<KnownValue>) {
        match self.body.kind(op) {
            OpKind::Load(access) if access.is_plain() => self.visit_load(op, known),
            OpKind::Store(access) => {
                let plain = access.is_plain();
                *known = self.unclobbered(known, op);
                if plain {
                    let (value, ptr) = (self.body.operand(op, 0), self.body.operand(op, 1));
                    self.record_access(op, ptr, value, known);
                }
            }
            kind if kind.is_parallel() && !self.uses_serial_projection(kind) => known.clear(),
            OpKind::Call(_)
                if read_only_regions::is_read_only_call(self.unit, self.body, self.facts, op) =>
            {
                self.visit_call(op, known);
            }
            OpKind::Load(_)
            | OpKind::AtomicRmw(..)
            | OpKind::CmpXchg { .. }
            | OpKind::Fence { .. }
            | OpKind::Call(_)
            | OpKind::Foreign(_) => *known = self.unclobbered(known, op),
            _ => {}
        }
    }

    fn visit_load(&mut self, op: Op, known: &mut Vec<KnownValue>) {
        let (ptr, result) = (self.body.operand(op, 0), self.body.result(op));
        let ty = self.body.ty(result);
        let fits = |e: &&KnownValue| {
            e.source == Source::Load(ptr) && self.is_bitcastable(self.body.ty(e.value), ty)
        };
        if let Some(entry) = known.iter().rev().find(fits) {
            self.found.push((op, entry.value));
        } else {
            self.record_access(op, ptr, result, known);
        }
    }

    fn visit_call(&mut self, op: Op, known: &mut Vec<KnownValue>) {
        let source = Source::Call(self.body.operands(op).collect());
        let result = self.body.result(op);
        let same =
            |e: &&KnownValue| e.source == source && self.body.ty(e.value) == self.body.ty(result);
        if let Some(entry) = known.iter().rev().find(same) {
            self.found.push((op, entry.value));
            return;
        }
        // The call writes no memory except `errno`.
        *known = self.unclobbered(known, op);
        let mut reads = self.facts.effects.of_op(self.unit, self.body, op);
        reads.retain(|access| access.kind == AccessKind::Read);
        let sets_errno = errno::is_set_by(self.unit, self.body, self.facts, op);
        self.push_entry(known, source, result, reads, sets_errno);
    }

    fn record_access(&self, op: Op, ptr: Value, value: Value, known: &mut Vec<KnownValue>) {
        let accesses = self.facts.effects.of_op(self.unit, self.body, op);
        if let Some(&access) = accesses.iter().find(|a| a.ptr() == Some(ptr)) {
            self.push_entry(known, Source::Load(ptr), value, vec![access], false);
        }
    }

    fn push_entry(
        &self,
        known: &mut Vec<KnownValue>,
        source: Source,
        value: Value,
        reads: Vec<MemoryAccess>,
        sets_errno: bool,
    ) {
        if known.len() == ENTRIES_MAX {
            known.remove(0);
        }
        known.push(KnownValue {
            source,
            value,
            reads,
            sets_errno,
        });
    }

    /// Returns whether a bitcast converts between the types: equal types, or scalars of equal width.
    fn is_bitcastable(&self, a: TypeId, b: TypeId) -> bool {
        let bits = |ty: TypeId| match self.unit.types.get(ty) {
            Type::Int(bits) if bits % 8 == 0 => Some(*bits),
            Type::Float(kind) if kind.bits() <= 64 => Some(kind.bits()),
            _ => None,
        };
        a == b || (bits(a).is_some() && bits(a) == bits(b))
    }
}
