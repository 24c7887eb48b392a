//! Small stack memory that outlives its frame.
//!
//! Where the return sweep is another function, stack memory that it may look at cannot lie in the frame
//! of the augmented run: it lies on the heap. What is small, of a fixed size, and made at most once in a
//! call, like the scalars that Fortran hands on by reference, needs no block of its own there: it lies in
//! that of the tape, behind the slots.

use crate::facts::Facts;
use crate::variant::{Mode, TapeOwner, Variant};
use gradus_ir::{AllocaPlace, Body, Op, OpKind, Unit};
use std::collections::HashMap;

/// The largest that lies in the tape's block: larger memory is worth a block of its own, whose contents
/// analyses tell from others.
const BYTES: u64 = 16;
/// Places in the block are multiples of this.
const ALIGN_BYTES: u64 = 8;

/// Where such memory lies.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Bytes from the first byte of all of it.
    places: HashMap<Op, i64>,
    /// The bytes of all of it.
    pub bytes: i64,
}

impl Held {
    /// That of a variant: of each allocation the memory itself, then its shadows.
    pub fn of(unit: &Unit, facts: &Facts<'_>, variant: &Variant) -> Held {
        let mut held = Held::default();
        for op in facts.body.walk(facts.body.root()) {
            let Some(bytes) = bytes(unit, facts.body, op, variant) else {
                continue;
            };
            let shadows = match facts.has_shadow(facts.body.result(op)) {
                true => i64::from(variant.width),
                false => 0,
            };
            held.places.insert(op, held.bytes);
            held.bytes += bytes * (1 + shadows);
        }
        held
    }

    /// The places of an allocation and its shadows begin here, each [`bytes`] long.
    pub fn place(&self, op: Op) -> Option<i64> {
        self.places.get(&op).copied()
    }
}

/// The bytes that an allocation takes in the tape's block; `None` where it lies elsewhere. Depends on
/// nothing but the variant's kind and the body, so that both sweeps see the same.
pub fn bytes(unit: &Unit, body: &Body, op: Op, variant: &Variant) -> Option<i64> {
    let split = matches!(variant.mode, Mode::Augmented | Mode::Return);
    let OpKind::Alloca(info) = body.kind(op) else {
        return None;
    };
    // Memory that goes through the program's hands it may move.
    if !split || variant.tape != TapeOwner::Derivative {
        return None;
    }
    let count = u64::try_from(body.as_int(unit, body.operand(op, 0))?).ok()?;
    let bytes = unit.layout.size_bytes(unit, info.ty).checked_mul(count)?;
    let fits = (1..=BYTES).contains(&bytes) && u64::from(info.align_bytes) <= ALIGN_BYTES;
    let plain = info.place == AllocaPlace::Frame && !info.inalloca;
    (fits && plain && is_made_once(body, op)).then(|| bytes.next_multiple_of(ALIGN_BYTES) as i64)
}

/// Whether no loop is around an op.
fn is_made_once(body: &Body, op: Op) -> bool {
    let owner = |op: &Op| body.owner(body.parent(*op)?);
    std::iter::successors(owner(&op), owner)
        .all(|around| matches!(body.kind(around), OpKind::If | OpKind::Switch(_)))
}
