//! Lowering to parallel intrinsics of `gradus/parallel.h`: LLVM IR that any optimiser may transform, that can
//! be linked from several files, and from which raising recovers the parallel ops.
//!
//! Each intrinsic is a call that returns a number, and the statement it marks is the then-arm of a condition on
//! the number, as in the header's macros. If every number is 1, the code is the serial projection. A parallel
//! loop becomes a loop nest, one loop and one intrinsic per index; reductions are carried values.
//!
//! No intrinsic exists for teams, critical regions, loops with stated chunks, user-defined reductions, and
//! conditional or orphaned tasks. Those become runtime calls, as for
//! [`Target::Runtime`](crate::Target::Runtime), and nested ops may have intrinsics again.

use crate::emit::{reduction_combine, serial};
use crate::lower::Lowering;
use gradus_edit::{inline_region, move_op};
use gradus_ir::{
    Attr, AttrSet, AttrValue, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Region, Unit,
    Value,
};

/// An intrinsic that marks a statement.
#[derive(Clone, Copy)]
enum Intrinsic {
    Looping,
    Scoping,
    Spawning,
}

impl Intrinsic {
    fn name(self) -> &'static str {
        match self {
            Intrinsic::Looping => "__gr_looping",
            Intrinsic::Scoping => "__gr_scoping",
            Intrinsic::Spawning => "__gr_spawning",
        }
    }
}

impl Lowering<'_> {
    /// Lowers a parallel op to an intrinsic or to runtime calls.
    pub(crate) fn lower_to_intrinsic(&mut self, body: &mut Body, op: Op) {
        match body.kind(op) {
            OpKind::ParFor { .. } if has_intrinsic(self.unit, body, op) => {
                let nest = serial::par_for_to_nest(&mut builder_before(self.unit, body, op), op);
                for nested in nest {
                    let flags = &mut body.ops[nested].flags;
                    *flags = flags.with(Flags::HAS_PARALLEL_INTRINSIC);
                    mark_by_intrinsic(self.unit, body, nested, Intrinsic::Looping);
                }
            }
            OpKind::Scope if tasks_have_intrinsics(body, op) => {
                mark_by_intrinsic(self.unit, body, op, Intrinsic::Scoping);
                inline_in_place(self.unit, body, op);
            }
            OpKind::Spawn { .. } => {
                mark_by_intrinsic(self.unit, body, op, Intrinsic::Spawning);
                inline_in_place(self.unit, body, op);
            }
            OpKind::Sync => {
                let b = &mut builder_before(self.unit, body, op);
                let void = b.unit.types.void();
                let sync = declare(b.unit, "__gr_syncing", void);
                b.call(sync, &[]);
                body.erase(op);
            }
            _ => self.lower_to_runtime(body, op),
        }
    }
}

/// Returns a builder before `op`, with the location of `op`.
fn builder_before<'a>(unit: &'a mut Unit, body: &'a mut Body, op: Op) -> Builder<'a> {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    b
}

/// Inlines the region of a scope or task in place.
fn inline_in_place(unit: &mut Unit, body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    inline_region(&mut builder_before(unit, body, op), op, region, &[]);
}

/// Returns true if raising recovers the loop from an intrinsic: unordered iterations and built-in reductions.
fn has_intrinsic(unit: &Unit, body: &Body, op: Op) -> bool {
    let OpKind::ParFor { grain, .. } = body.kind(op) else {
        return false;
    };
    let reductions = reduction_combine::reductions(unit, body, op);
    let own = reductions.iter().any(|r| r.region.is_some());
    grain.is_none() && !own && exits_only_at_end(body, body.op_regions(op)[0])
}

/// Returns true if raising recovers all tasks of a scope, including nested tasks, from intrinsics.
fn tasks_have_intrinsics(body: &Body, scope: Op) -> bool {
    let region = body.op_regions(scope)[0];
    let plain = |op: Op| match body.kind(op) {
        OpKind::Spawn {
            has_condition: when,
            has_final: serial,
        } => {
            let orphan = body.ops[op].flags.has(Flags::ORPHANED_TASK);
            !when && !serial && !orphan && exits_only_at_end(body, body.op_regions(op)[0])
        }
        _ => true,
    };
    exits_only_at_end(body, region) && body.walk(region).all(plain)
}

/// Returns true if control leaves the region only at its end.
fn exits_only_at_end(body: &Body, region: Region) -> bool {
    let ends = |op: Op| matches!(body.kind(op), OpKind::Yield);
    let leaves = |op: Op| matches!(body.kind(op), OpKind::Resume | OpKind::Return);
    body.last(region).is_some_and(ends) && !body.walk(region).any(leaves)
}

/// Marks `op` by an intrinsic. For a result of 0 a loop would yield its initial values.
fn mark_by_intrinsic(unit: &mut Unit, body: &mut Body, op: Op, word: Intrinsic) {
    let b = &mut builder_before(unit, body, op);
    let int = b.unit.types.int(32);
    let asked = declare(b.unit, word.name(), int);
    let call = b.call(asked, &[]);
    let (number, zero) = (b.body.result(call), b.zero(int));
    let marked = b.icmp(IntPredicate::Ne, number, zero);
    let results = b.body.results(op).to_vec();
    let types: Vec<_> = results.iter().map(|v| b.body.ty(*v)).collect();
    let left: Vec<Value> = match b.body.kind(op) {
        OpKind::For { .. } => b.body.operands(op).skip(1).collect(),
        _ => types.iter().map(|ty| b.poison(*ty)).collect(),
    };
    let (choice, side, other) = b.if_(marked, &types);
    for (result, value) in results.iter().zip(b.body.results(choice).to_vec()) {
        b.body.replace_uses(*result, value);
    }
    move_op(b.body, op, side);
    b.set_insertion_end(side);
    b.yield_(&results);
    b.set_insertion_end(other);
    b.yield_(&left);
}

/// Declares an intrinsic on first use. `nomerge` and `convergent` prevent merging of calls and new control
/// dependences.
fn declare(unit: &mut Unit, name: &str, result: gradus_ir::TypeId) -> FuncId {
    let ty = unit.types.func(result, Vec::new());
    let flag = |name: &str| Attr {
        name: name.to_string(),
        value: AttrValue::Flag,
    };
    let attrs = AttrSet {
        function: ["nounwind", "convergent", "nomerge"].map(flag).to_vec(),
        ..AttrSet::default()
    };
    unit.declare(name, ty, attrs)
}
