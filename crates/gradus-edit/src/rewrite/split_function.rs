//! Splits a long function body into a short body and outlined pieces.
//!
//! LLVM's passes take superlinear time in the length of a function: several thousand ops without loops, or
//! with very many branches, cost many times as much as the ops split over ten functions. A piece is a run of
//! consecutive ops of one region with their nested regions.
//!
//! 1. *Choice* ([`RunChoice`]): from the innermost regions outwards, each region with too many ops is split into
//!    runs of at most [`SplitLimits::piece_ops_max`] ops. Deep nests are therefore split as well.
//! 2. *Frame*: a value defined in one function (a piece or the remaining body) and used in another has a slot
//!    in a memory block of the original function. The address of the block is the only argument of a piece.
//!    The definition stores the value; each user function loads the value once, before the first use. Stack
//!    slots accessed by several pieces lie in the frame directly.
//! 3. *Outlining*: each run is cloned into a new function, inner runs first, and a call replaces the run.
//!
//! Ops bound to their function (allocas, returns, calls that return twice, must-tail calls) stay, as do all
//! ops that enclose them.

use crate::memory::slots::{Slot, slot};
use crate::{ValueMap, clone_op};
use gradus_ir::externals::{Effects, ExternalFn};
use gradus_ir::{
    AllocaInfo, AllocaStorage, Attr, AttrSet, AttrValue, Body, Builder, Definition, Entity, Flags,
    FuncId, Linkage, Op, OpKind, Region, TailKind, Type, TypeId, Unit, Value,
};
use std::collections::HashMap;

/// Limits for splitting a body.
#[derive(Clone, Copy, Debug)]
pub struct SplitLimits {
    /// A body of at most `whole` ops is not split.
    pub whole_ops_max: usize,
    /// Maximum number of ops in a piece. An op that cannot be split may exceed the limit.
    pub piece_ops_max: usize,
}

/// Inlining attributes of the function that pieces do not inherit.
const NOT_INHERITED: &[&str] = &["function-inline-threshold", "alwaysinline", "inlinehint"];

/// Splits the body of `func` if the body exceeds the limits; returns the functions of the pieces.
pub fn cut(unit: &mut Unit, func: FuncId, body: &mut Body, sizes: SplitLimits) -> Vec<FuncId> {
    let order: Vec<Op> = body.walk(body.root()).collect();
    if order.len() <= sizes.whole_ops_max {
        return Vec::new();
    }
    let mut runs = RunChoice::new(unit, body, &order, sizes).choose();
    if runs.is_empty() {
        return Vec::new();
    }
    let homes = Homes::new(body, &order, &runs);
    for run in &runs {
        drop_independence(body, run.region);
    }
    let frame = FrameLayout::new(unit, body, &order, &homes).emit(unit, body, &mut runs);
    let make = |(number, run): (usize, &Run)| outline_run(unit, func, body, frame, (number, run));
    runs.iter().enumerate().map(make).collect()
}

/// Consecutive ops of a region, first to last.
#[derive(Clone, Copy, Debug)]
struct Run {
    region: Region,
    first: Op,
    last: Op,
}

// ---- choice of the runs --------------------------------------------------------------------

/// State of the choice of runs.
struct RunChoice<'b> {
    unit: &'b Unit,
    body: &'b Body,
    order: &'b [Op],
    sizes: SplitLimits,
    /// Number of ops of each op including nested ops; an outlined run counts as one call.
    op_counts: Vec<usize>,
    /// For each op, whether another function may contain the op and its nested ops.
    movable: Vec<bool>,
    runs: Vec<Run>,
}

impl<'b> RunChoice<'b> {
    fn new(unit: &'b Unit, body: &'b Body, order: &'b [Op], sizes: SplitLimits) -> Self {
        RunChoice {
            unit,
            body,
            order,
            sizes,
            op_counts: vec![0; body.ops.len()],
            movable: vec![false; body.ops.len()],
            runs: Vec::new(),
        }
    }

    /// Returns the runs, each after its inner runs.
    fn choose(mut self) -> Vec<Run> {
        // An op precedes its nested ops in `order`, hence the reverse order visits all nested ops first.
        for &op in self.order.iter().rev() {
            let (mut weight, mut movable) = (1, can_move(self.unit, self.body, op));
            for &region in self.body.op_regions(op) {
                weight += self.split_region(region);
                movable &= self.body.ops_in(region).all(|op| self.movable[op.index()]);
            }
            self.op_counts[op.index()] = weight;
            self.movable[op.index()] = movable;
        }
        self.split_region(self.body.root());
        self.runs
    }

    /// Moves runs of a region to `runs` until the region is short enough; returns the number of remaining
    /// ops.
    fn split_region(&mut self, region: Region) -> usize {
        let weigh = |op: Op| self.op_counts[op.index()];
        let mut left: usize = self.body.ops_in(region).map(weigh).sum();
        if left <= self.sizes.piece_ops_max {
            return left;
        }
        let mut open: Option<(Run, usize)> = None;
        for op in self.body.ops_in(region) {
            let weight = self.op_counts[op.index()];
            let fits = self.movable[op.index()] && !self.body.kind(op).is_terminator();
            open = match open {
                Some((run, sum)) if fits && sum + weight <= self.sizes.piece_ops_max => {
                    Some((Run { last: op, ..run }, sum + weight))
                }
                full => {
                    left -= full.map_or(0, |(run, sum)| {
                        add_run(&mut self.runs, run, sum, self.sizes)
                    });
                    let (first, last) = (op, op);
                    let run = Run {
                        region,
                        first,
                        last,
                    };
                    fits.then_some((run, weight))
                }
            };
            if open.is_none() && left <= self.sizes.piece_ops_max / 2 {
                break;
            }
        }
        left - open.map_or(0, |(run, sum)| {
            add_run(&mut self.runs, run, sum, self.sizes)
        })
    }
}

/// Adds a run to the list unless a call would hardly be shorter; returns the number of ops saved in the
/// region.
fn add_run(runs: &mut Vec<Run>, run: Run, weight: usize, sizes: SplitLimits) -> usize {
    if weight < sizes.piece_ops_max.div_ceil(8).max(2) {
        return 0;
    }
    runs.push(run);
    weight - 1
}

/// Returns whether an op, apart from its nested ops, behaves identically in another function.
fn can_move(unit: &Unit, body: &Body, op: Op) -> bool {
    let kind = body.kind(op);
    let stays = match kind {
        OpKind::Alloca(_)
        | OpKind::Return
        | OpKind::Resume
        | OpKind::Foreign(_)
        | OpKind::Invoke(_)
        | OpKind::LandingPad(_) => true,
        OpKind::Call(_) => !call_can_move(unit, body, op),
        kind => kind.is_parallel(),
    };
    let mut values = body.operands(op).chain(body.results(op).iter().copied());
    !stays && values.all(|v| body.as_const(v).is_some() || is_storable(unit, body.ty(v)))
}

fn call_can_move(unit: &Unit, body: &Body, op: Op) -> bool {
    let OpKind::Call(info) = body.kind(op) else {
        return false;
    };
    let callee = unit.callee(body, op);
    let known = callee.and_then(|func| unit.known(func));
    let effects = callee.and_then(|func| unit.known_effects(func));
    let of_this_frame = match known {
        Some(ExternalFn::Marker(_)) => true,
        Some(_) => effects.is_some_and(|e: Effects| e.returns_twice),
        None => callee.is_some_and(|func| unit.functions[func].name.starts_with("llvm.")),
    };
    let of_callee = callee.map(|func| unit.functions[func].attrs);
    let mut attrs = of_callee.into_iter().chain(info.attrs);
    let states = |set: &AttrSet| {
        let mut names = ["returns_twice", "convergent"].iter();
        names.any(|name| set.function(name).is_some())
    };
    !of_this_frame
        && !attrs.any(|id| states(unit.attrs(id)))
        && info.convention == 0
        && info.tail != TailKind::MustTail
        && info.bundles.is_empty()
}

/// Returns whether values of a type have a fixed-size memory representation.
fn is_storable(unit: &Unit, ty: TypeId) -> bool {
    match unit.types.get(ty) {
        Type::Int(_) | Type::Float(_) | Type::Ptr(_) => true,
        Type::Vector { scalable, .. } => !scalable,
        Type::Array { elem, .. } => is_storable(unit, *elem),
        Type::Struct { fields, .. } => fields.iter().all(|ty| is_storable(unit, *ty)),
        Type::Void | Type::Func { .. } | Type::Opaque(_) => false,
    }
}

/// Drops the independence flags of the enclosing loops, because iterations now share the frame.
fn drop_independence(body: &mut Body, region: Region) {
    let owners: Vec<Op> = body
        .regions_around(region)
        .filter_map(|at| body.owner(at))
        .collect();
    for op in owners {
        let flags = body.ops[op].flags;
        body.ops[op].flags = flags.without(Flags::INDEPENDENT.with(Flags::ALLOWS_EQUAL_WRITES));
    }
}

// ---- function of each op -------------------------------------------------------------------

/// Function after the split: number of a piece, or `None` for the remaining body.
type Home = Option<usize>;

/// Function that contains each op after the split.
struct Homes {
    of_ops: Vec<Home>,
    /// Function that calls each piece.
    callers: Vec<Home>,
}

impl Homes {
    fn new(body: &Body, order: &[Op], runs: &[Run]) -> Self {
        let mut own: HashMap<Op, usize> = HashMap::new();
        for (number, run) in runs.iter().enumerate() {
            let mut at = Some(run.first);
            while let Some(op) = at {
                own.insert(op, number);
                at = body.next(op).filter(|_| op != run.last);
            }
        }
        let mut of_ops: Vec<Home> = vec![None; body.ops.len()];
        for &op in order {
            let outer = body.parent_op(op);
            let outer = outer.and_then(|owner| of_ops[owner.index()]);
            of_ops[op.index()] = own.get(&op).copied().or(outer);
        }
        let caller = |run: &Run| body.owner(run.region).and_then(|op| of_ops[op.index()]);
        let callers = runs.iter().map(caller).collect();
        Homes { of_ops, callers }
    }

    fn of(&self, op: Op) -> Home {
        self.of_ops[op.index()]
    }

    /// Returns the function that defines a value; `None` for constants.
    fn of_value(&self, body: &Body, value: Value) -> Home {
        match body.values[value].def {
            Definition::Result(op, _) => self.of(op),
            Definition::Param(region, _) => body.owner(region).and_then(|op| self.of(op)),
            Definition::Const(_) => None,
        }
    }

    /// Returns the piece called by `home` that contains `inner` at any depth.
    fn callee_with(&self, home: Home, inner: Home) -> Option<usize> {
        let mut at = inner;
        while let Some(piece) = at {
            if self.callers[piece] == home {
                return Some(piece);
            }
            at = self.callers[piece];
        }
        None
    }
}

// ---- the frame -----------------------------------------------------------------------------

/// Value used outside its defining function: value, using function, and uses (op, operand index).
type Crossing = (Value, Home, Vec<(Op, usize)>);

/// Layout of the frame.
struct FrameLayout<'h> {
    homes: &'h Homes,
    /// Position of each op in the walk.
    positions: Vec<usize>,
    crossings: Vec<Crossing>,
    /// Slots that lie in the frame directly.
    slots: HashMap<Value, Slot>,
    offsets: HashMap<Value, u64>,
    /// Values in the frame, in order of their offsets.
    values: Vec<Value>,
    bytes: u64,
    align_bytes: u64,
}

impl<'h> FrameLayout<'h> {
    fn new(unit: &Unit, body: &Body, order: &[Op], homes: &'h Homes) -> Self {
        let mut positions = vec![0; body.ops.len()];
        let mut uses: Vec<(Value, Home, usize, usize)> = Vec::new();
        for (position, &op) in order.iter().enumerate() {
            positions[op.index()] = position;
            for (index, value) in body.operands(op).enumerate() {
                let constant = body.as_const(value).is_some();
                if !constant && homes.of_value(body, value) != homes.of(op) {
                    uses.push((value, homes.of(op), position, index));
                }
            }
        }
        uses.sort_unstable();
        let mut framing = FrameLayout {
            homes,
            positions,
            crossings: Vec::new(),
            slots: HashMap::new(),
            offsets: HashMap::new(),
            values: Vec::new(),
            bytes: 0,
            align_bytes: 1,
        };
        for (value, home, position, index) in uses {
            let place = (order[position], index);
            match framing.crossings.last_mut() {
                Some((last, at, places)) if (*last, *at) == (value, home) => places.push(place),
                _ => framing.crossings.push((value, home, vec![place])),
            }
            if !framing.offsets.contains_key(&value) {
                framing.allocate_slot(unit, body, value);
            }
        }
        framing
    }

    fn allocate_slot(&mut self, unit: &Unit, body: &Body, value: Value) {
        let mut ty = body.ty(value);
        if let Some((slot, of)) = movable_slot(unit, body, value) {
            self.slots.insert(value, slot);
            ty = of;
        }
        let align_bytes = unit.layout.align_bytes(unit, ty).max(1);
        let offset = self.bytes.next_multiple_of(align_bytes);
        self.offsets.insert(value, offset);
        self.values.push(value);
        self.bytes = offset + unit.layout.size_bytes(unit, ty);
        self.align_bytes = self.align_bytes.max(align_bytes);
    }

    /// Emits the frame alloca, the stores and the loads; returns the frame's address.
    fn emit(&self, unit: &mut Unit, body: &mut Body, runs: &mut [Run]) -> Value {
        let mut b = Builder::new(unit, body);
        if let Some(first) = b.body.first(b.body.root()) {
            b.set_insertion_before(first);
        }
        let byte = b.unit.types.int(8);
        let (ptr, one) = (b.unit.types.ptr(), b.i64(1));
        let info = AllocaInfo {
            ty: b.unit.types.array(byte, self.bytes),
            align_bytes: self.align_bytes as u32,
            storage: AllocaStorage::Frame,
            inalloca: false,
        };
        let frame = b.value(OpKind::Alloca(info), &[one], ptr);
        for (value, home, places) in &self.crossings {
            self.emit_load(&mut b, frame, runs, (*value, *home, places));
        }
        for &value in &self.values {
            match self.slots.get(&value) {
                Some(slot) => self.replace_slot_by_frame(&mut b, frame, (value, slot)),
                None => self.emit_store(&mut b, frame, runs, value),
            }
        }
        frame
    }

    fn address(&self, b: &mut Builder<'_>, frame: Value, value: Value) -> Value {
        let offset = b.i64(self.offsets[&value] as i64);
        b.byte_addr(frame, offset)
    }

    /// Loads a value from the frame before its first use in a function and replaces the uses.
    fn emit_load(
        &self,
        b: &mut Builder<'_>,
        frame: Value,
        runs: &mut [Run],
        (value, home, places): (Value, Home, &[(Op, usize)]),
    ) {
        let made = self.homes.of_value(b.body, value);
        // After the call of the defining piece, or at the start of the using function.
        let region = match self.homes.callee_with(home, made).or(home) {
            Some(piece) => runs[piece].region,
            None => b.body.root(),
        };
        let standing = |&(op, _): &(Op, usize)| b.body.ancestor_in(region, op);
        let first = places.iter().filter_map(standing);
        let Some(first) = first.min_by_key(|op| self.positions[op.index()]) else {
            unreachable!("uses of a value are inside the region of its definition");
        };
        b.set_insertion_before(first);
        let address = self.address(b, frame, value);
        let here = match self.slots.contains_key(&value) {
            true => address,
            false => {
                let ty = b.body.ty(value);
                b.load(ty, address)
            }
        };
        for &(op, index) in places {
            b.body.set_operand(op, index, here);
        }
        if let (Some(piece), Some(op)) = (home, b.body.def_op(address))
            && runs[piece].first == first
        {
            runs[piece].first = op;
        }
    }

    /// Stores a value to the frame after its definition.
    fn emit_store(&self, b: &mut Builder<'_>, frame: Value, runs: &mut [Run], value: Value) {
        let (after, next) = match b.body.values[value].def {
            Definition::Result(op, _) => (Some(op), b.body.next(op)),
            Definition::Param(region, _) if region == b.body.root() => {
                (None, b.body.def_op(frame).and_then(|op| b.body.next(op)))
            }
            Definition::Param(region, _) => (None, b.body.first(region)),
            Definition::Const(_) => (None, None),
        };
        let Some(next) = next else {
            unreachable!("a terminator follows a definition, and constants have no position");
        };
        b.set_insertion_before(next);
        let address = self.address(b, frame, value);
        let store = b.store(value, address);
        if let Some((after, piece)) = after.and_then(|op| Some((op, self.homes.of(op)?)))
            && runs[piece].last == after
        {
            runs[piece].last = store;
        }
    }

    /// Replaces the remaining uses of a slot by its address in the frame.
    fn replace_slot_by_frame(
        &self,
        b: &mut Builder<'_>,
        frame: Value,
        (value, slot): (Value, &Slot),
    ) {
        for &op in &slot.markers {
            b.body.erase(op);
        }
        if let Some(op) = b.body.def_op(value) {
            b.set_insertion_before(op);
            let address = self.address(b, frame, value);
            b.body.replace_uses(value, address);
            b.body.erase(op);
        }
    }
}

/// Returns the uses and the type of the stack slot `value`, if the slot lives as long as the function and all
/// accesses are direct loads and stores.
fn movable_slot(unit: &Unit, body: &Body, value: Value) -> Option<(Slot, TypeId)> {
    let op = body.def_op(value)?;
    let OpKind::Alloca(info) = body.kind(op) else {
        return None;
    };
    let plain = body.parent(op) == Some(body.root())
        && u64::from(info.align_bytes) <= unit.layout.align_bytes(unit, info.ty);
    let slot = slot(unit, body, op).filter(|slot| plain && slot.addresses.is_empty())?;
    Some((slot, info.ty))
}

// ---- outlining -----------------------------------------------------------------------------

/// Outlines a run into a new function and replaces the run by a call.
fn outline_run(
    unit: &mut Unit,
    func: FuncId,
    body: &mut Body,
    frame: Value,
    (number, run): (usize, &Run),
) -> FuncId {
    let ptr = unit.types.ptr();
    let void = unit.types.void();
    let mut piece = Body::new(&[ptr]);
    let mut map = ValueMap::zip(&[frame], piece.params());
    let mut ops = Vec::new();
    let mut at = Some(run.first);
    while let Some(op) = at {
        ops.push(op);
        at = body.next(op).filter(|_| op != run.last);
    }
    let mut b = Builder::new(unit, &mut piece);
    for &op in &ops {
        clone_op(body, op, &mut b, &mut map);
    }
    b.return_(None);
    let ty = unit.types.func(void, vec![ptr]);
    let name = unit.fresh_name(&format!("{}.part{number}", unit.functions[func].name));
    let made = unit.define(name, ty, Linkage::Internal, piece);
    let attrs = piece_attributes(unit, func);
    unit.functions[made].attrs = unit.intern_attrs(attrs);
    unit.functions[made].derived_from = unit.functions[func].derived_from;
    unit.functions[made].span = unit.functions[func].span.clone();
    let mut b = Builder::new(unit, body);
    b.loc = ops.iter().find_map(|op| b.body.ops[*op].loc);
    b.set_insertion_before(run.first);
    b.call(made, &[frame]);
    for op in ops.into_iter().rev() {
        body.erase(op);
    }
    made
}

/// Returns a piece's attributes: the function's code generation attributes, `noinline`, and a `noalias` frame
/// argument.
fn piece_attributes(unit: &Unit, func: FuncId) -> AttrSet {
    let flag = |name: &str| Attr {
        name: name.into(),
        value: AttrValue::Flag,
    };
    let whole = &unit.attrs(unit.functions[func].attrs).function;
    let kept = |a: &&Attr| a.name != "noinline" && !NOT_INHERITED.contains(&a.name.as_str());
    let kept = whole.iter().filter(kept).cloned();
    AttrSet {
        function: kept.chain([flag("noinline")]).collect(),
        params: vec![vec![flag("noalias")]],
        ..AttrSet::default()
    }
}
