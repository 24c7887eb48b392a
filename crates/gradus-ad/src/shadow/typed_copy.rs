//! Typed copies in shadow memory and their reversal: copies of memory cells of several types, for example of
//! structs with floats, pointers and integers.
//!
//! A small, known number of cells is expanded. Otherwise a loop runs over the period of the cells. The ends
//! of a `memmove` may overlap: a period then reads all its cells before it writes any. The loop starts at the
//! end from which no cell is overwritten before it is read. The reversal runs in the opposite direction.
//! Cells before the first period (the head of a struct that ends in an array) go first, and only where the
//! ends cannot overlap.

use crate::analysis::body_facts::copied_cells::TypedCopy;
use crate::emit::builder::{DerivativeBuilder, MemorySpace, widen};
use crate::shadow::tangent_ops;
use gradus_analysis::{CopiedWord, LaneKind};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, IntPredicate, TypeId, Value};

/// Treatment of float cells in the shadow copy.
#[derive(Clone, Copy, Debug)]
pub enum FloatCopy {
    /// No copy: reverse mode.
    Skip,
    /// Zero: the source is inactive.
    Zero,
    /// The source's tangent under the condition, if any, else zero.
    Tangents(Option<Value>),
}

/// Start of a period: addresses in the shadows of both ends, and the remaining bytes if fewer than a period
/// may remain.
struct PeriodStart {
    to: Value,
    from: Value,
    remaining: Option<Value>,
}

impl TypedCopy {
    /// Emits the copy of pointer cells in shadow memory, and of float cells as `numbers` specifies.
    pub fn make(
        &self,
        out: &mut DerivativeBuilder<'_>,
        to: Value,
        from: Value,
        bytes: Value,
        numbers: FloatCopy,
    ) {
        let moved = |out: &mut DerivativeBuilder<'_>, kind| match (kind, numbers) {
            (LaneKind::Pointer, _) => Some(out.unit.types.ptr()),
            (LaneKind::Float(_), FloatCopy::Skip) => None,
            (LaneKind::Float(kind), _) => Some(out.unit.types.float(kind)),
        };
        self.run(out, [to, from], bytes, false, |out, start, words| {
            for group in self.cell_groups(words) {
                let mut read = Vec::new();
                for &word in group {
                    if let Some(ty) = moved(out, word.kind) {
                        read.push((word, start.read_cell(out, word, ty, numbers)));
                    }
                }
                for (word, value) in read {
                    start.if_included(out, word, None, |out| {
                        let at = address(out, start.to, word);
                        let store = out.build().store(value, at);
                        out.set_align(store, 1);
                        None
                    });
                }
            }
        });
    }

    /// Emits the move of the adjoints of the copy's floats back to the original, if it has a shadow, under
    /// the condition `real`.
    pub fn undo(
        &self,
        out: &mut DerivativeBuilder<'_>,
        to: Value,
        from: Option<Value>,
        bytes: Value,
        real: Option<Value>,
    ) {
        self.run(
            out,
            [to, from.unwrap_or(to)],
            bytes,
            true,
            |out, start, words| {
                for group in self.cell_groups(words) {
                    let mut taken = Vec::new();
                    for &word in group {
                        if let LaneKind::Float(kind) = word.kind {
                            let ty = out.unit.types.float(kind);
                            taken.push((word, start.take(out, word, ty)));
                        }
                    }
                    if from.is_none() {
                        continue;
                    }
                    when(out, real, None, |out| {
                        for (word, adjoint) in taken {
                            start.accumulate_cell(out, word, adjoint);
                        }
                        None
                    });
                }
            },
        );
    }

    /// Returns groups of cells: all cells of a group are read before any of them is written.
    fn cell_groups<'w>(&self, words: &'w [CopiedWord]) -> impl Iterator<Item = &'w [CopiedWord]> {
        let size = match self.may_overlap() {
            true => words.len(),
            false => 1,
        };
        words.chunks(size.max(1))
    }

    fn may_overlap(&self) -> bool {
        self.overlap && !is_planted(Mutant::OverlappingCopyElementwise)
    }

    /// Runs `make` for the head and for each period, in the direction for a copy or, with `backwards`, for
    /// its reversal.
    fn run(
        &self,
        out: &mut DerivativeBuilder<'_>,
        [to, from]: [Value; 2],
        bytes: Value,
        backwards: bool,
        mut make: impl FnMut(&mut DerivativeBuilder<'_>, &PeriodStart, &[CopiedWord]),
    ) {
        let Some(period) = self.period else {
            let left = None;
            return make(
                out,
                &PeriodStart {
                    to,
                    from,
                    remaining: left,
                },
                &self.cells,
            );
        };
        let mut bytes = widen(out, bytes);
        let left = Some(bytes);
        let mut start = PeriodStart {
            to,
            from,
            remaining: left,
        };
        let is_head = |word: &CopiedWord| word.offset_bytes < period.from_bytes;
        let (head, repeated) = self.cells.split_at(self.cells.partition_point(is_head));
        if period.from_bytes > 0 {
            make(out, &start, head);
            (start, bytes) = start.after_head(out, period.from_bytes, bytes);
        }
        let in_period = |word: &CopiedWord| CopiedWord {
            offset_bytes: word.offset_bytes - period.from_bytes,
            ..*word
        };
        let words: Vec<CopiedWord> = repeated.iter().map(in_period).collect();
        let from_last = self.may_overlap().then(|| match backwards {
            true => out.build().icmp(IntPredicate::Ult, to, from),
            false => out.build().icmp(IntPredicate::Ugt, to, from),
        });
        let bytes = [bytes, out.build().i64(period.bytes as i64)];
        start.each_period(out, bytes, from_last, |out, start| make(out, start, &words));
    }
}

impl PeriodStart {
    /// Returns the start and the size of the bytes after the first `head` bytes; the size is zero if no bytes
    /// remain.
    fn after_head(
        &self,
        out: &mut DerivativeBuilder<'_>,
        head: u64,
        bytes: Value,
    ) -> (PeriodStart, Value) {
        let head = out.build().i64(head as i64);
        let more = out.build().icmp(IntPredicate::Ugt, bytes, head);
        let rest = out.build().binary(BinaryOp::Sub, bytes, head);
        let none = out.build().i64(0);
        let rest = out.build().select(more, rest, none);
        let start = PeriodStart {
            to: out.build().byte_addr(self.to, head),
            from: out.build().byte_addr(self.from, head),
            remaining: Some(rest),
        };
        (start, rest)
    }

    /// Runs `make` for each period, starting with the last period if `from_last` holds.
    fn each_period(
        &self,
        out: &mut DerivativeBuilder<'_>,
        [bytes, period]: [Value; 2],
        from_last: Option<Value>,
        make: impl FnOnce(&mut DerivativeBuilder<'_>, &PeriodStart),
    ) {
        let one = out.build().i64(1);
        let most = out.build().binary(BinaryOp::Sub, period, one);
        let up = out.build().binary(BinaryOp::Add, bytes, most);
        let count = out.build().binary(BinaryOp::UDiv, up, period);
        let (_, region) = out.build().for_(count, &[]);
        let outside = std::mem::replace(&mut out.insertion_point, (region, None));
        let mut k = out.body.region_params(region)[0];
        if let Some(from_last) = from_last {
            let last = out.build().binary(BinaryOp::Sub, count, one);
            let mirrored = out.build().binary(BinaryOp::Sub, last, k);
            k = out.build().select(from_last, mirrored, k);
        }
        let at = out.build().binary(BinaryOp::Mul, k, period);
        let start = PeriodStart {
            to: out.build().byte_addr(self.to, at),
            from: out.build().byte_addr(self.from, at),
            remaining: Some(out.build().binary(BinaryOp::Sub, bytes, at)),
        };
        make(out, &start);
        out.build().yield_(&[]);
        out.insertion_point = outside;
    }

    /// Emits the shadow value of a cell that a copy reads.
    fn read_cell(
        &self,
        out: &mut DerivativeBuilder<'_>,
        word: CopiedWord,
        ty: TypeId,
        numbers: FloatCopy,
    ) -> Value {
        let there = self.if_included(out, word, Some(ty), |out| {
            let at = address(out, self.from, word);
            let value = out.build().load(ty, at);
            if let Some(load) = out.body.def_op(value) {
                out.set_align(load, 1);
            }
            Some(value)
        });
        let zero = out.build().zero(ty);
        let Some(value) = there else {
            unreachable!("the read of a cell yields a value");
        };
        match (word.kind, numbers) {
            (LaneKind::Float(_), FloatCopy::Zero) => zero,
            (LaneKind::Float(_), FloatCopy::Tangents(Some(real))) => {
                out.build().select(real, value, zero)
            }
            _ => value,
        }
    }
    /// Emits the adjoint of a copied cell and clears the cell's shadow.
    fn take(&self, out: &mut DerivativeBuilder<'_>, word: CopiedWord, ty: TypeId) -> Value {
        let taken = self.if_included(out, word, Some(ty), |out| {
            let at = address(out, self.to, word);
            let taken = unaligned_load(out, ty, at);
            let zero = out.build().zero(ty);
            unaligned_store(out, zero, at);
            Some(taken)
        });
        let Some(taken) = taken else {
            unreachable!("the read of a cell's adjoint yields a value");
        };
        taken
    }
    /// Emits the accumulation into the adjoint of the original cell.
    fn accumulate_cell(&self, out: &mut DerivativeBuilder<'_>, word: CopiedWord, adjoint: Value) {
        let ty = out.body.ty(adjoint);
        self.if_included(out, word, None, |out| {
            let at = address(out, self.from, word);
            let old = unaligned_load(out, ty, at);
            let sum = tangent_ops::accumulate_floats(out, old, adjoint);
            unaligned_store(out, sum, at);
            None
        });
    }
    /// Runs `make` under the condition that the copy includes the whole cell.
    fn if_included(
        &self,
        out: &mut DerivativeBuilder<'_>,
        word: CopiedWord,
        result: Option<TypeId>,
        make: impl FnOnce(&mut DerivativeBuilder<'_>) -> Option<Value>,
    ) -> Option<Value> {
        let there = self.remaining.map(|left| {
            let bytes = match word.kind {
                LaneKind::Pointer => out.unit.layout.pointer_size_bytes(0),
                LaneKind::Float(kind) => u64::from(kind.bits() / 8),
            };
            let end = out.build().i64((word.offset_bytes + bytes) as i64);
            out.build().icmp(IntPredicate::Uge, left, end)
        });
        when(out, there, result, make)
    }
}

/// Runs `make` under a condition, or unconditionally. The result is zero if the condition fails.
fn when(
    out: &mut DerivativeBuilder<'_>,
    condition: Option<Value>,
    result: Option<TypeId>,
    make: impl FnOnce(&mut DerivativeBuilder<'_>) -> Option<Value>,
) -> Option<Value> {
    let Some(condition) = condition else {
        return make(out);
    };
    let (op, yes, no) = out.build().if_(condition, result.as_slice());
    let outside = std::mem::replace(&mut out.insertion_point, (yes, None));
    let value = make(out);
    out.build().yield_(value.as_slice());
    out.insertion_point = (no, None);
    let zero = result.map(|ty| out.build().zero(ty));
    out.build().yield_(zero.as_slice());
    out.insertion_point = outside;
    out.body.results(op).first().copied()
}

fn address(out: &mut DerivativeBuilder<'_>, start: Value, word: CopiedWord) -> Value {
    let offset = out.build().i64(word.offset_bytes as i64);
    out.build().byte_addr(start, offset)
}

fn unaligned_load(out: &mut DerivativeBuilder<'_>, ty: TypeId, at: Value) -> Value {
    let value = out.load(ty, at, MemorySpace::Shadow, None);
    if let Some(op) = out.body.def_op(value) {
        out.set_align(op, 1);
    }
    value
}

fn unaligned_store(out: &mut DerivativeBuilder<'_>, value: Value, at: Value) {
    let op = out.store(value, at, MemorySpace::Shadow, None);
    out.set_align(op, 1);
}
