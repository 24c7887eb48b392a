//! Parallel ops as the words of `gradus/parallel.h`: code that any optimiser of LLVM's IR may work on, that
//! modules of several files are linked from, and of which raising makes the same ops again.
//!
//! Each word is a call that gives a number, and what it stands before is the side of a condition on that
//! number, as the header's own macros have it; with 1 for every number the code is the serial projection. A loop
//! becomes a nest of loops, one for each index, with a word each; what it reduces is carried.
//!
//! There is no word for teams, critical regions, loops with chunks that the program names, reductions by an
//! operation of the program's own, and tasks with conditions or outside of all regions: those become calls of
//! the run-time library, as for [`Target::Runtime`](crate::Target::Runtime), and what stands inside of them may
//! have words again.

use crate::{Lowering, combine, serial};
use gradus_edit::{inline_region, move_op};
use gradus_ir::{
    Attr, AttrSet, AttrValue, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Region, Unit,
    Value,
};

/// A word that stands before a statement.
#[derive(Clone, Copy)]
enum Word {
    Looping,
    Scoping,
    Spawning,
}

impl Word {
    fn name(self) -> &'static str {
        match self {
            Word::Looping => "__gr_looping",
            Word::Scoping => "__gr_scoping",
            Word::Spawning => "__gr_spawning",
        }
    }
}

impl Lowering<'_> {
    /// Puts a word in place of a parallel op, or what the run-time library is called for.
    pub(crate) fn worded(&mut self, body: &mut Body, op: Op) {
        match body.kind(op) {
            OpKind::ParFor { .. } if has_word(self.unit, body, op) => {
                let nest = serial::par_for(&mut at(self.unit, body, op), op);
                for nested in nest {
                    let flags = &mut body.ops[nested].flags;
                    *flags = flags.with(Flags::MARKED);
                    mark(self.unit, body, nested, Word::Looping);
                }
            }
            OpKind::Scope if tasks_have_words(body, op) => {
                mark(self.unit, body, op, Word::Scoping);
                open(self.unit, body, op);
            }
            OpKind::Spawn { .. } => {
                mark(self.unit, body, op, Word::Spawning);
                open(self.unit, body, op);
            }
            OpKind::Sync => {
                let b = &mut at(self.unit, body, op);
                let void = b.unit.types.void();
                let sync = declare(b.unit, "__gr_syncing", void);
                b.call(sync, &[]);
                body.erase(op);
            }
            _ => self.op(body, op),
        }
    }
}

/// A builder before an op, with its place in the source.
fn at<'a>(unit: &'a mut Unit, body: &'a mut Body, op: Op) -> Builder<'a> {
    let mut b = Builder::new(unit, body);
    b.at_op(op);
    b.loc = b.body.ops[op].loc;
    b
}

/// Puts the code of a scope or a task where it stands.
fn open(unit: &mut Unit, body: &mut Body, op: Op) {
    let region = body.op_regions(op)[0];
    inline_region(&mut at(unit, body, op), op, region, &[]);
}

/// Whether a loop is what raising makes of a word before a loop: its iterations in any order, and sums and the
/// like of them.
fn has_word(unit: &Unit, body: &Body, op: Op) -> bool {
    let OpKind::ParFor { grain, .. } = body.kind(op) else {
        return false;
    };
    let reductions = combine::reductions(unit, body, op);
    let own = reductions.iter().any(|r| r.region.is_some());
    grain.is_none() && !own && comes_to_its_end(body, body.op_regions(op)[0])
}

/// Whether all tasks of a scope, those of its tasks included, are what raising makes of a word.
fn tasks_have_words(body: &Body, scope: Op) -> bool {
    let region = body.op_regions(scope)[0];
    let plain = |op: Op| match body.kind(op) {
        OpKind::Spawn { when, serial } => {
            let orphan = body.ops[op].flags.has(Flags::ORPHAN);
            !when && !serial && !orphan && comes_to_its_end(body, body.op_regions(op)[0])
        }
        _ => true,
    };
    comes_to_its_end(body, region) && body.walk(region).all(plain)
}

/// Whether control leaves a region by its end alone.
fn comes_to_its_end(body: &Body, region: Region) -> bool {
    let ends = |op: Op| matches!(body.kind(op), OpKind::Yield);
    let leaves = |op: Op| matches!(body.kind(op), OpKind::Resume | OpKind::Return);
    body.last(region).is_some_and(ends) && !body.walk(region).any(leaves)
}

/// Puts a word before an op. Where its number were 0, a loop would leave what it began with.
fn mark(unit: &mut Unit, body: &mut Body, op: Op, word: Word) {
    let b = &mut at(unit, body, op);
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
    b.at_end(side);
    b.yield_(&results);
    b.at_end(other);
    b.yield_(&left);
}

/// A word's function, declared where it is new: calls of it are neither merged nor made depend on conditions.
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
