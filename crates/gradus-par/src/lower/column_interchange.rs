//! Column interchange: interchanges a parallel loop over matrix columns with the loop down a column, for
//! contiguous access.
//!
//! ```text
//! par.for j < n { s = 0; for i < m { s += a[i * n + j] }; o[j] = s }
//!   →   in a chunk lo..hi, for each 64 columns:
//!       for j { s[j] = 0 }; for i < m { for j { s[j] += a[i * n + j] } }; for j { o[j] = s[j] }
//! ```
//!
//! The loop down a column has the row length as stride and a serial recurrence. After the interchange, columns
//! are read contiguously and in vectors. Values that live across the loops are stored in an array of the chunk
//! (scalar expansion, strip-mining and interchange: Allen and Kennedy, 1984).
//!
//! Legal because iterations are race-free: interleaving does not change an iteration's result, and each
//! iteration keeps its order. Profitable if every access of the inner loop has a stride of one element or zero
//! across columns, and at least one access has a large stride down the column. A chunk of a few columns runs
//! unchanged.
//!
//! Place: while a loop becomes its range function, hence the trip count remains the number of columns.

use crate::emit::reduction_combine::copied_value;
use crate::emit::serial::copied_yields;
use crate::lower::loops::RangeCopy;
use gradus_analysis::{Affine, Alias, AliasOptions, Effects, affine};
use gradus_edit::{clone_op, clone_ops, entry_alloca, is_pure, to_index_type};
use gradus_ir::{
    BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Type, TypeId, Unit, Value,
};

/// Columns per strip: a few vectors, with the expanded scalars in the L1 cache.
const STRIP_COLUMNS: i64 = 64;
/// The minimum number of columns; fewer are not profitable.
const COLUMNS_MIN: i64 = 16;
/// Rows at a smaller distance share cache lines.
const FAR_BYTES: u64 = 64;
/// A column known to be shorter stays unchanged.
const ROWS_MIN: i64 = 8;
/// The maximum number of ops in the inner loop; more ops have their operands in memory anyway.
const OPS_MAX: usize = 100;

/// A parallel loop over columns.
pub(crate) struct ColumnLoop {
    /// The loop down a column.
    down: Op,
    /// The ops before `down`, each with a flag for recomputation at every use.
    ops_before: Vec<(Op, bool)>,
    /// The ops after `down`.
    ops_after: Vec<Op>,
    /// The stored values of the ops before `down`.
    stored_values: Vec<Value>,
}

impl ColumnLoop {
    /// Returns the loop's columns if interchange is legal and profitable.
    pub(crate) fn of(
        unit: &Unit,
        func: FuncId,
        body: &Body,
        op: Op,
        effects: &Effects,
    ) -> Option<ColumnLoop> {
        let columns = ColumnLoop::by_form(unit, body, op)?;
        let alias = Alias::new(unit, Some(func), body, effects, &AliasOptions::default());
        columns.is_profitable(&alias, op).then_some(columns)
    }

    fn by_form(unit: &Unit, body: &Body, op: Op) -> Option<ColumnLoop> {
        let OpKind::ParFor {
            dims: 1,
            reductions,
            ..
        } = body.kind(op)
        else {
            return None;
        };
        let region = body.op_regions(op)[0];
        let (mut before, mut after, mut down) = (Vec::new(), Vec::new(), None);
        for inner in body.ops_in(region) {
            match (body.kind(inner), down) {
                (OpKind::Yield, _) => {}
                (OpKind::For { .. }, None) => down = Some(inner),
                _ if !is_plain(unit, body, inner) => return None,
                (_, None) => before.push((inner, is_recomputed(unit, body, inner))),
                (_, Some(_)) => after.push(inner),
            }
        }
        let down = down?;
        let inner = body.op_regions(down)[0];
        let straight = |op: Op| is_plain(unit, body, op) || matches!(body.kind(op), OpKind::Yield);
        let trips = body.operand(down, 0);
        let outside = !body.is_defined_in(trips, region);
        let short = body.as_int(unit, trips).is_some_and(|n| n < ROWS_MIN);
        let kept = values_to_store(body, &before, down);
        let columns = ColumnLoop {
            down,
            ops_before: before,
            ops_after: after,
            stored_values: kept,
        };
        let fits = reductions.is_empty()
            && !body.ops[op].flags.has(Flags::ALLOWS_EQUAL_WRITES)
            && outside
            && !short
            && body.ops_in(inner).count() <= OPS_MAX
            && body.ops_in(inner).all(straight)
            && columns
                .stored(body)
                .all(|value| is_storable(unit, body.ty(value)));
        fits.then_some(columns)
    }

    /// Returns the values each column stores between the loops: the carried values of `down` and `kept`.
    fn stored<'a>(&'a self, body: &'a Body) -> impl Iterator<Item = Value> + 'a {
        body.results(self.down)
            .iter()
            .chain(&self.stored_values)
            .copied()
    }

    /// Returns true if every access has a column stride of zero or one element, and one access a large row
    /// stride.
    fn is_profitable(&self, alias: &Alias, op: Op) -> bool {
        let (unit, body) = (alias.unit, alias.body);
        let inner = body.op_regions(self.down)[0];
        let mut far = false;
        for access in body.ops_in(inner) {
            let (ptr, ty) = match body.kind(access) {
                OpKind::Load(_) => (body.operand(access, 0), body.ty(body.result(access))),
                OpKind::Store(_) => (body.operand(access, 1), body.ty(body.operand(access, 0))),
                _ => continue,
            };
            let Some(form) = affine(alias, ptr, Some(op)) else {
                return false;
            };
            let size = unit.layout.store_bytes(unit, ty);
            match form.constant_step(op).map(i64::unsigned_abs) {
                // A store of all columns to one location is a race; the loop stays unchanged.
                Some(0) if matches!(body.kind(access), OpKind::Load(_)) => {}
                Some(step) if step == size => far |= has_large_stride(&form, self.down),
                _ => return false,
            }
        }
        far
    }
}

/// Returns true if the address has a large stride in the loop `lp`.
fn has_large_stride(form: &Affine, lp: Op) -> bool {
    let mut terms = form.terms_of(lp);
    terms.any(|term| !term.factors.is_empty() || term.coefficient.unsigned_abs() >= FAR_BYTES)
}

/// Returns true for a plain access or a pure op, without regions.
fn is_plain(unit: &Unit, body: &Body, op: Op) -> bool {
    let accesses = match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        _ => is_pure(unit, body, op),
    };
    accesses && body.op_regions(op).is_empty()
}

/// Returns true if `op` is recomputed rather than stored: addresses and indices.
fn is_recomputed(unit: &Unit, body: &Body, op: Op) -> bool {
    let is_index = |value: &Value| {
        let ty = unit.types.get(body.ty(*value));
        matches!(ty, Type::Int(_) | Type::Ptr(_))
    };
    is_pure(unit, body, op)
        && !matches!(body.kind(op), OpKind::Call(_) | OpKind::Freeze)
        && body.results(op).iter().all(is_index)
}

/// Returns the results of non-recomputed ops in `before` with uses outside of those ops and of `down`'s
/// operands.
fn values_to_store(body: &Body, before: &[(Op, bool)], down: Op) -> Vec<Value> {
    let once = before.iter().filter(|(_, again)| !again);
    let values = once.flat_map(|(op, _)| body.results(*op));
    let early = |op: Op| before.iter().any(|(other, again)| *other == op && !again);
    let is_initial = |op: Op| op == down;
    let needed = |value: &&Value| {
        let mut uses = body.uses(**value);
        uses.any(|used| !early(used.op) && !is_initial(used.op))
    };
    values.filter(needed).copied().collect()
}

/// Returns true if values of type `ty` can be stored in memory unchanged.
fn is_storable(unit: &Unit, ty: TypeId) -> bool {
    match unit.types.get(ty) {
        Type::Int(bits) => [8, 16, 32, 64].contains(bits),
        Type::Float(_) | Type::Ptr(_) => true,
        _ => false,
    }
}

impl RangeCopy<'_> {
    /// Emits the range of a column loop: strips if the range has enough columns, else one column at a time.
    pub(crate) fn columns(&mut self, b: &mut Builder<'_>, columns: &ColumnLoop, range: [Value; 2]) {
        let trips = b.binary(BinaryOp::Sub, range[1], range[0]);
        let least = b.i64(COLUMNS_MIN);
        let enough = b.icmp(IntPredicate::Uge, trips, least);
        let (_, yes, no) = b.if_(enough, &[]);
        let place = b.set_insertion_end(no);
        self.emit_row(b, range, &[], &[]);
        b.yield_(&[]);
        b.set_insertion_end(yes);
        self.strips(b, columns, range[0], trips);
        b.yield_(&[]);
        b.restore_insertion_point(place);
    }

    fn strips(&mut self, b: &mut Builder<'_>, columns: &ColumnLoop, first: Value, trips: Value) {
        let stored: Vec<Value> = columns.stored(self.source).collect();
        let arrays: Vec<Value> = stored.iter().map(|v| self.array(b, *v)).collect();
        let (width, more) = (b.i64(STRIP_COLUMNS), b.i64(STRIP_COLUMNS - 1));
        let rounded = b.add(trips, more);
        let count = b.binary(BinaryOp::UDiv, rounded, width);
        let (_, region) = b.for_(count, &[]);
        let back = b.set_insertion_end(region);
        let strip = b.body.region_params(region)[0];
        let done = b.mul(strip, width);
        let first = b.add(first, done);
        let left = b.binary(BinaryOp::Sub, trips, done);
        let few = b.icmp(IntPredicate::Ult, left, width);
        let count = b.select(few, left, width);
        let strip = Strip {
            columns,
            arrays: &arrays,
            stored: &stored,
            first,
            count,
        };
        self.emit_before(b, &strip);
        self.emit_loop_down(b, &strip);
        self.emit_after(b, &strip);
        b.yield_(&[]);
        b.restore_insertion_point(back);
    }

    fn array(&self, b: &mut Builder<'_>, value: Value) -> Value {
        let ty = self.source.ty(value);
        let array = b.unit.types.intern(Type::Array {
            elem: ty,
            len: STRIP_COLUMNS as u64,
        });
        entry_alloca(b, array)
    }

    /// Emits the ops before `down` and stores the initial carried values.
    fn emit_before(&mut self, b: &mut Builder<'_>, strip: &Strip<'_>) {
        let (down, carried) = (
            strip.columns.down,
            self.source.results(strip.columns.down).len(),
        );
        self.emit_column_loop(b, strip, |copy, b, column| {
            for (op, _) in &strip.columns.ops_before {
                clone_op(copy.source, *op, b, &mut copy.map);
            }
            let initial = (0..carried).map(|n| copy.source.operand(down, n + 1));
            let values = initial.chain(strip.columns.stored_values.iter().copied());
            for (value, array) in values.zip(strip.arrays) {
                let value = copied_value(b, copy.source, &copy.map, value);
                let at = b.addr(b.body.ty(value), *array, column);
                b.store(value, at);
            }
        });
    }

    /// Emits the loop down; each row runs an inner loop over the columns of the strip.
    fn emit_loop_down(&mut self, b: &mut Builder<'_>, strip: &Strip<'_>) {
        let down = strip.columns.down;
        let inner = self.source.op_regions(down)[0];
        let params = self.source.region_params(inner).to_vec();
        let trips = copied_value(b, self.source, &self.map, self.source.operand(down, 0));
        let (_, region) = b.for_(trips, &[]);
        let back = b.set_insertion_end(region);
        let row = b.body.region_params(region)[0];
        self.emit_column_loop(b, strip, |copy, b, column| {
            copy.map.set(params[0], row);
            copy.reload_column(b, strip, column, &params[1..]);
            copy.recompute_before(b, strip);
            clone_ops(copy.source, inner, b, &mut copy.map);
            let Some(given) = copied_yields(b, copy.source, &copy.map, inner) else {
                unreachable!("a loop down a column yields at the end of each row");
            };
            for (value, array) in given.into_iter().zip(strip.arrays) {
                let at = b.addr(b.body.ty(value), *array, column);
                b.store(value, at);
            }
        });
        b.yield_(&[]);
        b.restore_insertion_point(back);
    }

    /// Emits the ops after `down`.
    fn emit_after(&mut self, b: &mut Builder<'_>, strip: &Strip<'_>) {
        if strip.columns.ops_after.is_empty() {
            return;
        }
        let results = self.source.results(strip.columns.down).to_vec();
        self.emit_column_loop(b, strip, |copy, b, column| {
            copy.reload_column(b, strip, column, &results);
            copy.recompute_before(b, strip);
            for op in &strip.columns.ops_after {
                clone_op(copy.source, *op, b, &mut copy.map);
            }
        });
    }
}

/// A strip of columns.
struct Strip<'a> {
    columns: &'a ColumnLoop,
    /// The array of each stored value, indexed by column.
    arrays: &'a [Value],
    stored: &'a [Value],
    first: Value,
    count: Value,
}

impl RangeCopy<'_> {
    /// Emits a loop over the columns of a strip, independent like the parallel loop.
    fn emit_column_loop(
        &mut self,
        b: &mut Builder<'_>,
        strip: &Strip<'_>,
        code: impl FnOnce(&mut Self, &mut Builder<'_>, Value),
    ) {
        let (lp, region) = b.for_(strip.count, &[]);
        b.body.ops[lp].flags = Flags::INDEPENDENT;
        let back = b.set_insertion_end(region);
        let column = b.body.region_params(region)[0];
        let index = b.add(strip.first, column);
        b.set_flags(index, Flags::NUW.with(Flags::NSW));
        let param = self.source.region_params(self.plan.region)[0];
        let index = to_index_type(b, index, self.source.ty(param));
        self.map.set(param, index);
        code(self, b, column);
        b.yield_(&[]);
        b.restore_insertion_point(back);
    }

    /// Recomputes the addresses and indices before the loop down.
    fn recompute_before(&mut self, b: &mut Builder<'_>, strip: &Strip<'_>) {
        for (op, _) in strip.columns.ops_before.iter().filter(|(_, again)| *again) {
            clone_op(self.source, *op, b, &mut self.map);
        }
    }

    /// Reloads a column's stored values. `carried` names the carried values in the current region.
    fn reload_column(
        &mut self,
        b: &mut Builder<'_>,
        strip: &Strip<'_>,
        column: Value,
        carried: &[Value],
    ) {
        let names = carried.iter().chain(&strip.columns.stored_values);
        for ((name, array), like) in names.zip(strip.arrays).zip(strip.stored) {
            let ty = self.source.ty(*like);
            let at = b.addr(ty, *array, column);
            let value = b.load(ty, at);
            self.map.set(*name, value);
        }
    }
}

#[cfg(test)]
mod tests;
