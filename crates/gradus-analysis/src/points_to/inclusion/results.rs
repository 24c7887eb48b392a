//! Results of the inclusion-based analysis: one alias set per object, the targets of each value, the callees of each
//! indirect call, and the types that accesses observed.

use crate::points_to::alias_sets::{
    AliasSet, AliasSetId, AliasSets, CellRef, CopyBytes, MemoryOrigin,
};
use crate::points_to::inclusion::constraints::{Constraint, NodeId};
use crate::points_to::inclusion::objects::{Location, ObjectId, ObjectKey};
use crate::points_to::inclusion::solver::Solver;
use crate::points_to::leaf_tables::LeafTargets;
use crate::types::flat_aggregates::FlatTypes;
use crate::types::lattice::{CellType, tbaa_members};
use gradus_ir::{Entity, FuncId, Op, Type, TypeId, Unit, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximal number of scalars of a declared type that are recorded.
const SCALARS_MAX: usize = 2048;

/// Computes [`AliasSets::of`].
pub(crate) fn results(solver: &Solver<'_>) -> AliasSets {
    let unit = solver.unit;
    let mut memory = AliasSets {
        leaves: FlatTypes::of(unit),
        copies_are_directed: true,
        assumes_aliasing_rules: solver.uses_tags(),
        ..AliasSets::default()
    };
    for (object, data) in solver.objects.iter() {
        memory.classes.push(AliasSet {
            folds: data.folds.list().to_vec(),
            origins: origin(&data.key).into_iter().collect(),
            escaped: solver.escaped.contains(&object) && !matches!(data.key, ObjectKey::Bits(_)),
            ..AliasSet::default()
        });
        if let ObjectKey::Global(global) = data.key {
            memory
                .globals
                .insert(global, cell_ref(Location::start(object)));
        }
    }
    for (at, node) in solver.stored_cells() {
        let targets = addresses(solver, node).map(cell_ref);
        let words = &mut memory.classes[at.object.0 as usize].words;
        words.entry(at.offset).or_default().targets.extend(targets);
    }
    for class in &mut memory.classes {
        for word in class.words.values_mut() {
            word.targets.sort_unstable();
            word.targets.dedup();
        }
    }
    add_values(solver, &mut memory);
    add_copies(solver, &mut memory);
    Evidence {
        solver,
        memory: &mut memory,
    }
    .add();
    add_calls(solver, &mut memory);
    memory
}

/// Returns the addresses in a node. Bits of addresses are no addresses.
fn addresses(solver: &Solver<'_>, node: NodeId) -> impl Iterator<Item = Location> {
    let set = solver.set(node).into_iter();
    set.filter(|at| !solver.is_bits(*at))
}

fn cell_ref(at: Location) -> CellRef {
    CellRef {
        class: AliasSetId::from_index(at.object.0 as usize),
        offset_bytes: at.offset,
    }
}

/// Returns the allocation site of an object. Memory behind unknown pointers has none.
fn origin(key: &ObjectKey) -> Option<MemoryOrigin> {
    match *key {
        ObjectKey::External => Some(MemoryOrigin::Unknown),
        ObjectKey::Argument(func, index) => Some(MemoryOrigin::Argument(func, index)),
        ObjectKey::Alloca(func, op, _) => Some(MemoryOrigin::Alloca(func, op)),
        ObjectKey::Heap(func, op, _) => Some(MemoryOrigin::Heap(func, op)),
        ObjectKey::Global(global) => Some(MemoryOrigin::Global(global)),
        ObjectKey::Function(func) => Some(MemoryOrigin::Function(func)),
        ObjectKey::Returned(func, op, _) => Some(MemoryOrigin::External(func, op)),
        ObjectKey::ByValue(..)
        | ObjectKey::Variadic(..)
        | ObjectKey::Behind(..)
        | ObjectKey::Bits(_) => None,
    }
}

/// Adds the targets of values and results: the union over the instances of each function.
fn add_values(solver: &Solver<'_>, memory: &mut AliasSets) {
    let mut instances: BTreeMap<FuncId, Vec<usize>> = BTreeMap::new();
    for (index, instance) in solver.instances.list.iter().enumerate() {
        instances.entry(instance.func).or_default().push(index);
    }
    for (func, indices) in instances {
        let Some(body) = solver.unit.functions[func].body.as_deref() else {
            unreachable!("the functions of the call graph have bodies");
        };
        let targets = |nodes: &mut dyn Iterator<Item = Option<NodeId>>| -> Vec<CellRef> {
            let sets = nodes.flatten().map(|node| addresses(solver, node));
            sets.flatten().map(cell_ref).collect()
        };
        let table = LeafTargets::build(body, &memory.leaves, |value: Value, leaf: usize| {
            let mut nodes = indices
                .iter()
                .map(|&index| solver.slots[index].of(value)[leaf]);
            targets(&mut nodes)
        });
        let count = solver.returns[indices[0]].len();
        let returned = (0..count).map(|leaf| {
            let mut nodes = indices.iter().map(|&index| solver.returns[index][leaf]);
            let mut list = targets(&mut nodes);
            list.sort_unstable();
            list.dedup();
            list
        });
        memory.returns.insert(func, returned.collect());
        let assembled = |value: &Value| {
            let nodes = indices.iter().flat_map(|&i| solver.slots[i].of(*value));
            nodes.flatten().any(|node| solver.is_assembled(*node))
        };
        let values = body.values.iter().map(|(value, _)| value);
        let found = values.filter(assembled).map(|value| (func, value));
        memory.assembled.extend(found);
        memory.functions.insert(func, table);
    }
}

/// Adds the callees of indirect calls. Needs the evidence of accesses.
fn add_calls(solver: &Solver<'_>, memory: &mut AliasSets) {
    let mut callee_of: BTreeMap<usize, NodeId> = BTreeMap::new();
    for constraint in &solver.program.constraints {
        if let Constraint::Call { callee, call } = *constraint {
            callee_of.insert(call, callee);
        }
    }
    for (number, call) in solver.program.calls.iter().enumerate() {
        let bound = solver.bound.get(&number).into_iter().flatten();
        let is_unknown = solver.unknown_calls.contains(&number)
            && may_be_unknown_code(solver, memory, callee_of[&number]);
        let (callees, unknown) = memory.callees.entry(call.at).or_default();
        callees.extend(bound);
        callees.sort_unstable();
        callees.dedup();
        *unknown |= is_unknown;
    }
}

/// Returns true if a called pointer may be the address of unknown code. Memory that the program reads or writes is no
/// code: in a union of function and data pointers, the call does not see the data pointers.
fn may_be_unknown_code(solver: &Solver<'_>, memory: &AliasSets, callee: NodeId) -> bool {
    let mut targets = addresses(solver, callee).peekable();
    targets.peek().is_none()
        || targets.any(|at| match solver.objects.get(at.object).key {
            ObjectKey::External => true,
            ObjectKey::Argument(..) | ObjectKey::Returned(..) | ObjectKey::Behind(..) => {
                let evidence = &memory.classes[at.object.0 as usize].evidence;
                !evidence.values().any(|seen| seen.is_accessed())
            }
            ObjectKey::ByValue(..)
            | ObjectKey::Variadic(..)
            | ObjectKey::Alloca(..)
            | ObjectKey::Heap(..)
            | ObjectKey::Global(_)
            | ObjectKey::Function(_)
            | ObjectKey::Bits(_) => false,
        })
}

/// Adds the byte copies: per op, the union over the instances.
fn add_copies(solver: &Solver<'_>, memory: &mut AliasSets) {
    /// Sources, destinations and size of the copies of an op.
    type Ends = (BTreeSet<CellRef>, BTreeSet<CellRef>, Option<u64>);
    let mut order: Vec<((FuncId, Op), Option<u64>)> = Vec::new();
    let mut ends: HashMap<((FuncId, Op), Option<u64>), Ends> = HashMap::new();
    for copy in &solver.program.copies {
        let is_bound = copy.guard.is_none_or(|(number, func)| {
            let bound = solver.bound.get(&number);
            bound.is_some_and(|bound| bound.contains(&func))
        });
        if !is_bound {
            continue;
        }
        let key = (copy.at, copy.size_bytes);
        let (to, from, size) = ends.entry(key).or_insert_with(|| {
            order.push(key);
            Ends::default()
        });
        to.extend(solver.set(copy.to).into_iter().map(cell_ref));
        from.extend(solver.set(copy.from).into_iter().map(cell_ref));
        *size = copy.size_bytes;
    }
    for key in order {
        let Some((to, from, size_bytes)) = ends.remove(&key) else {
            unreachable!("each key has ends");
        };
        memory.copies.push(CopyBytes {
            at: key.0,
            to: to.into_iter().collect(),
            from: from.into_iter().collect(),
            size_bytes,
        });
    }
}

/// Adds the types that accesses observe and declarations name.
struct Evidence<'s, 'a> {
    solver: &'s Solver<'a>,
    memory: &'s mut AliasSets,
}

impl Evidence<'_, '_> {
    fn add(&mut self) {
        let solver = self.solver;
        for (object, data) in solver.objects.iter() {
            for &(at, ty) in &data.declared {
                self.declare(object, at, ty);
            }
        }
        for &(node, ty) in &solver.program.evidence.sources {
            for Location { object, offset, .. } in solver.set(node) {
                self.declare(object, offset, ty);
            }
        }
        let mut bases = BTreeSet::new();
        for &(node, at, base) in &solver.program.evidence.tbaa_bases {
            for Location { object, offset, .. } in solver.set(node) {
                bases.insert((object, offset.wrapping_add(at), base));
            }
        }
        for (object, start, base) in bases {
            for (offset, seen) in tbaa_members(solver.unit, base) {
                self.note(object, start.wrapping_add(offset as i64), seen.declared());
            }
        }
        for &(node, at, seen) in &solver.program.evidence.cells {
            for location in solver.set(node) {
                let mut places = Vec::new();
                let moved = solver
                    .objects
                    .visit_moved(location, at, |place| places.push(place));
                if moved.is_err() {
                    unreachable!("the folds include every access after the last round");
                }
                for place in places {
                    self.note(place.object, place.offset, seen);
                }
            }
        }
        for &(at, stride) in &solver.steps {
            let class = &mut self.memory.classes[at.object.0 as usize];
            class.strides.push((at.offset, stride));
        }
        for class in &mut self.memory.classes {
            if class.escaped {
                class.words.entry(0).or_default();
                for cell in class.words.values_mut() {
                    cell.observed.add(&CellType::UNKNOWN_WRITE);
                }
            }
        }
    }
    /// Records `seen` for a cell.
    fn note(&mut self, object: ObjectId, offset: i64, seen: CellType) {
        // No program accesses a function as data: a pointer with this target has another value there.
        let is_memory = !self.solver.objects.get(object).key.is_without_memory();
        if seen.is_nothing() || !is_memory {
            return;
        }
        let at = self.solver.objects.cell(Location::at(object, offset));
        let class = &mut self.memory.classes[object.0 as usize];
        class
            .words
            .entry(at.offset)
            .or_default()
            .observed
            .add(&seen);
        class.evidence.entry(offset).or_default().add(&seen);
    }
    /// Records the declared type of memory. Character arrays may hold any type (rustc declares all stack memory as
    /// bytes).
    fn declare(&mut self, object: ObjectId, start: i64, ty: TypeId) {
        let unit = self.solver.unit;
        let mut ty = ty;
        while let Type::Array { elem, .. } = *unit.types.get(ty) {
            ty = elem;
        }
        for (offset, ty) in declared_scalars(unit, ty) {
            let seen = match unit.types.get(unit.types.scalar(ty)) {
                Type::Float(kind) => CellType::float(*kind),
                Type::Ptr(_) => CellType::POINTER,
                Type::Int(bits) if *bits > 8 => CellType::INTEGER,
                _ => continue,
            };
            let (elem, count) = match *unit.types.get(ty) {
                Type::Vector { elem, len, .. } => (elem, i64::from(len)),
                _ => (ty, 1),
            };
            let bytes = unit.layout.store_bytes(unit, elem) as i64;
            for k in 0..count {
                let at = start.wrapping_add(offset).wrapping_add(k * bytes);
                self.note(object, at, seen.declared());
            }
        }
    }
}

/// Returns the offset in bytes and the type of the first [`SCALARS_MAX`] scalars and vectors in a type.
fn declared_scalars(unit: &Unit, ty: TypeId) -> Vec<(i64, TypeId)> {
    let (mut list, mut work) = (Vec::new(), vec![(0i64, ty)]);
    while let Some((at, ty)) = work.pop() {
        if list.len() + work.len() >= SCALARS_MAX {
            break;
        }
        let layout = &unit.layout;
        match unit.types.get(ty) {
            Type::Struct { fields, .. } => {
                let fields = fields.iter().enumerate().rev();
                work.extend(fields.map(|(index, &field)| {
                    let offset = layout.field_offset_bytes(unit, ty, index as u64);
                    (at.wrapping_add(offset as i64), field)
                }));
            }
            Type::Array { elem, len } => {
                let stride = layout.size_bytes(unit, *elem) as i64;
                let count = (*len).min(SCALARS_MAX as u64) as i64;
                work.extend(
                    (0..count)
                        .rev()
                        .map(|k| (at.wrapping_add(k * stride), *elem)),
                );
            }
            _ => list.push((at, ty)),
        }
    }
    list
}
