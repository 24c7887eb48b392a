//! Taint analysis of a thread count within the body of the query.
//!
//! Values computed from the count by arithmetic are data-tainted ([`Taint::Value`]). A value selected by a
//! branch on the count among the program's data, or left by a loop over the count, is only control-tainted
//! ([`Taint::Control`]).
//!
//! Floating-point values are results, which a correct program computes for any number of threads. Exceptions:
//! floats computed from the count by arithmetic, and floats selected by the count among constants. Memory
//! private to the body is tracked like values.

use gradus_analysis::{
    AccessKind, Effects, MemoryAccess, MemoryRegion, Nest, Object, ObjectId, PointsTo,
};
use gradus_ir::externals::{ExternalFn, OpenMpFn, SystemFn};
use gradus_ir::{Body, Definition, FuncId, GlobalId, Op, OpKind, Region, Unit, Value};
use std::collections::{HashMap, HashSet};

/// The kind of taint of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taint {
    /// Control taint: the count decides on the program value selected.
    Control,
    /// Data taint: the value is computed from the count.
    Value,
}

/// A body with points-to sets and effects.
pub(crate) struct TaintContext<'a> {
    unit: &'a Unit,
    body: &'a Body,
    effects: &'a Effects,
    points_to: PointsTo,
    /// The objects returned to the caller.
    returned: HashSet<ObjectId>,
    /// The ops that access each object.
    accessors: HashMap<ObjectId, Vec<Op>>,
}

impl<'a> TaintContext<'a> {
    pub(crate) fn of(unit: &'a Unit, func: FuncId, body: &'a Body, effects: &'a Effects) -> Self {
        let points_to = PointsTo::of(unit, Some(func), body, &Nest::of(body), effects);
        let mut accessors: HashMap<ObjectId, Vec<Op>> = HashMap::new();
        for op in body.walk(body.root()) {
            let accesses = effects.of_op(unit, body, op);
            let pointers: HashSet<Value> = accesses.iter().filter_map(MemoryAccess::ptr).collect();
            for target in pointers
                .iter()
                .flat_map(|ptr| points_to.targets(body, *ptr))
            {
                accessors.entry(target.object).or_default().push(op);
            }
        }
        TaintContext {
            unit,
            body,
            effects,
            returned: points_to.returned(body),
            points_to,
            accessors,
        }
    }

    /// Returns true if the memory at `ptr` is private to the body and its strands.
    pub(crate) fn is_private(&self, ptr: Value) -> bool {
        let mut targets = self.points_to.targets(self.body, ptr).iter();
        targets.all(|target| {
            self.points_to.is_private_or_strand_shared(target.object)
                && !self.returned.contains(&target.object)
        })
    }

    /// Returns true for a float or a vector of floats.
    pub(crate) fn is_float(&self, value: Value) -> bool {
        let scalar = self.unit.types.scalar(self.body.ty(value));
        self.unit.types.float_kind(scalar).is_some()
    }

    fn is_constant(&self, value: Value) -> bool {
        matches!(self.body.values[value].def, Definition::Const(_))
    }

    /// Returns true if `value` is computed from constants alone, on all paths.
    pub(crate) fn is_of_constants(&self, value: Value) -> bool {
        let mut seen = HashSet::from([value]);
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            let Some(sources) = self.sources(value) else {
                return false;
            };
            work.extend(sources.into_iter().filter(|source| seen.insert(*source)));
        }
        true
    }

    /// Returns the operands or alternatives that determine `value`; `None` for program data.
    fn sources(&self, value: Value) -> Option<Vec<Value>> {
        let body = self.body;
        match body.values[value].def {
            Definition::Const(_) => Some(Vec::new()),
            Definition::Result(op, index) => self.sources_of_result(op, index as usize),
            Definition::Param(region, index) => {
                let (owner, index) = (body.owner(region)?, index as usize);
                let again = body.last(region)?;
                match (body.kind(owner), body.kind(again)) {
                    (OpKind::For { .. }, OpKind::Yield) => {
                        let before = body.operand(again, index.checked_sub(1)?);
                        Some(vec![body.operand(owner, index), before])
                    }
                    (OpKind::Loop { .. }, OpKind::Repeat) => {
                        let before = body.operand(again, index + 1);
                        Some(vec![body.operand(owner, index), before])
                    }
                    _ => None,
                }
            }
        }
    }

    fn sources_of_result(&self, op: Op, index: usize) -> Option<Vec<Value>> {
        let body = self.body;
        match body.kind(op) {
            OpKind::Select => Some(body.operands(op).skip(1).collect()),
            OpKind::If | OpKind::Switch(_) => {
                let ends = body.op_regions(op).iter().filter_map(|r| body.last(*r));
                let ends = ends.filter(|end| matches!(body.kind(*end), OpKind::Yield));
                Some(ends.map(|end| body.operand(end, index)).collect())
            }
            OpKind::For { .. } => {
                let end = body.yield_of(body.op_regions(op)[0])?;
                Some(vec![body.operand(op, index + 1), body.operand(end, index)])
            }
            OpKind::Loop { .. } => {
                let region = body.op_regions(op)[0];
                let end = body
                    .last(region)
                    .filter(|end| matches!(body.kind(*end), OpKind::Repeat))?;
                let first = 1 + body.region_params(region).len();
                Some(vec![body.operand(end, first + index)])
            }
            OpKind::Call(_) if matches!(self.known(op), Some(ExternalFn::Math(_))) => {
                Some(body.operands(op).collect())
            }
            kind if kind.is_arithmetic() || matches!(kind, OpKind::Freeze) => {
                Some(body.operands(op).collect())
            }
            _ => None,
        }
    }

    /// Returns true if `op` writes a distinct location in each iteration of a loop inside of `within`, or of
    /// `within` itself: array initialisation.
    fn initializes_array(&self, ptr: Value, op: Op, within: Op) -> bool {
        let body = self.body;
        let Some(address) = body.def_op(ptr) else {
            return false;
        };
        let is_loop = |op: &Op| {
            matches!(
                body.kind(*op),
                OpKind::For { .. } | OpKind::ShareFor { .. } | OpKind::ParFor { .. }
            )
        };
        let below = body.ancestors(op).position(|op| op == within);
        let mut inner = body.ancestors(op).take(below.map_or(0, |count| count + 1));
        inner.any(|around| is_loop(&around) && body.is_ancestor(around, address))
    }

    /// Returns true if `ptr` points to initialised globals (lookup tables) only.
    fn is_constant_table(&self, ptr: Value) -> bool {
        let targets = self.points_to.targets(self.body, ptr);
        let begins = |global: GlobalId| {
            let init = self.unit.globals[global].init.as_ref();
            init.is_some_and(|init| init.bytes.iter().any(|byte| *byte != 0))
        };
        !targets.is_empty()
            && targets
                .iter()
                .all(|target| match self.points_to.object(target.object) {
                    Object::Global(global) => begins(global),
                    _ => false,
                })
    }

    fn known(&self, op: Op) -> Option<ExternalFn> {
        self.unit.known_callee(self.body, op)
    }

    /// Returns true if `op` is a team or inside of a team.
    fn in_team(&self, op: Op) -> bool {
        matches!(self.body.kind(op), OpKind::Spmd { .. }) || self.body.is_in_team(op)
    }
}

/// A tainted memory object.
#[derive(Clone, Copy, Debug, Default)]
struct ObjectTaint {
    /// The taint of the contents; `None` if only the size is tainted.
    share: Option<Taint>,
    /// True if the tainted contents include floats.
    floats: bool,
}

enum TaintWork {
    Value(Value),
    Control(Op),
    Object(ObjectId),
}

/// Everything that depends on a thread count.
pub(crate) struct TaintFlow<'a> {
    context: &'a TaintContext<'a>,
    values: HashMap<Value, Taint>,
    objects: HashMap<ObjectId, ObjectTaint>,
    controls: HashMap<Op, Taint>,
    work: Vec<TaintWork>,
    /// The ops that use a tainted value or are control-dependent on one.
    pub(crate) ops: HashSet<Op>,
    /// The taint escapes from the analysis: to external memory, a function or the caller.
    pub(crate) escapes: bool,
    /// The taint determines locations touched in external memory.
    pub(crate) selects_external_location: bool,
    /// The taint decides on accesses of external memory.
    pub(crate) guards_external_access: bool,
    /// A team depends on the taint.
    pub(crate) reaches_team: bool,
}

impl<'a> TaintFlow<'a> {
    /// Propagates taint from `values`.
    pub(crate) fn of(context: &'a TaintContext<'a>, values: &[Value]) -> Self {
        let mut followed = TaintFlow {
            context,
            values: HashMap::new(),
            objects: HashMap::new(),
            controls: HashMap::new(),
            work: Vec::new(),
            ops: HashSet::new(),
            escapes: false,
            selects_external_location: false,
            guards_external_access: false,
            reaches_team: false,
        };
        for &value in values {
            followed.taint_value(value, Taint::Value);
        }
        followed.propagate();
        followed
    }

    /// Propagates taint from memory, e.g. sums to which each rank adds a constant. The flag of each pointer is
    /// true for floats.
    pub(crate) fn of_memory(context: &'a TaintContext<'a>, pointers: &[(Value, bool)]) -> Self {
        let mut followed = TaintFlow::of(context, &[]);
        for &(ptr, floats) in pointers {
            followed.taint_memory_at(ptr, Taint::Value, floats);
        }
        followed.propagate();
        followed
    }

    /// Returns true if `value` is tainted.
    pub(crate) fn is_tainted(&self, value: Value) -> bool {
        self.values.contains_key(&value)
    }

    /// Returns true if two taints share an op or an object.
    pub(crate) fn overlaps(&self, other: &TaintFlow<'_>) -> bool {
        self.ops.iter().any(|op| other.ops.contains(op))
            || self.objects.keys().any(|o| other.objects.contains_key(o))
    }

    fn propagate(&mut self) {
        while let Some(work) = self.work.pop() {
            match work {
                TaintWork::Value(value) => {
                    let body = self.context.body;
                    let share = self.values[&value];
                    if let Some(op) = body.def_op(value) {
                        self.record_op(op);
                    }
                    for used in body.uses(value) {
                        self.record_op(used.op);
                        self.propagate_operand(used.op, used.index as usize, value, share);
                    }
                }
                TaintWork::Control(op) => self.propagate_control(op, self.controls[&op]),
                TaintWork::Object(object) => self.propagate_object(object, self.objects[&object]),
            }
        }
    }

    fn record_op(&mut self, op: Op) {
        if self.ops.insert(op) {
            self.reaches_team |= self.context.in_team(op);
        }
    }

    fn taint_value(&mut self, value: Value, share: Taint) {
        if self.values.get(&value).is_none_or(|old| *old < share) {
            self.values.insert(value, share);
            self.work.push(TaintWork::Value(value));
        }
    }

    /// Like [`TaintFlow::taint_value`], except for floats.
    fn taint_unless_float(&mut self, value: Value, share: Taint) {
        if !self.context.is_float(value) {
            self.taint_value(value, share);
        }
    }

    fn taint_all_unless_float(&mut self, values: &[Value], share: Taint) {
        for value in values {
            self.taint_unless_float(*value, share);
        }
    }

    fn taint_control(&mut self, op: Op, share: Taint) {
        if self.controls.get(&op).is_none_or(|old| *old < share) {
            self.controls.insert(op, share);
            self.work.push(TaintWork::Control(op));
        }
    }

    fn taint_object(&mut self, object: ObjectId, share: Option<Taint>, floats: bool) {
        let old = self.objects.get(&object).copied();
        let held = old.unwrap_or_default();
        let new = ObjectTaint {
            share: held.share.max(share),
            floats: held.floats || floats,
        };
        if old.is_none() || new.share != held.share || new.floats != held.floats {
            self.objects.insert(object, new);
            self.work.push(TaintWork::Object(object));
        }
    }

    /// Taints the memory at `ptr`.
    fn taint_memory_at(&mut self, ptr: Value, share: Taint, floats: bool) {
        if !self.context.is_private(ptr) {
            self.escapes = true;
            return;
        }
        for target in self.context.points_to.targets(self.context.body, ptr) {
            self.taint_object(target.object, Some(share), floats);
        }
    }

    /// Propagates the taint of operand `index` of `op`.
    fn propagate_operand(&mut self, op: Op, index: usize, value: Value, share: Taint) {
        let body = self.context.body;
        let regions = body.op_regions(op);
        let params = |region: usize| {
            regions
                .get(region)
                .map_or(&[][..], |r| body.region_params(*r))
        };
        let results = body.results(op);
        match body.kind(op) {
            OpKind::Load(_) => {
                self.record_address(value);
                for result in results {
                    match self.context.is_constant_table(value) {
                        true => self.taint_value(*result, share),
                        false => self.taint_unless_float(*result, Taint::Control),
                    }
                }
            }
            OpKind::Store(_) if index == 1 => self.record_address(value),
            OpKind::Store(_) => {
                let floats = self.context.is_float(value);
                self.taint_memory_at(body.operand(op, 1), share, floats);
            }
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } if index == 0 => {
                self.record_address(value);
                self.taint_all_unless_float(results, Taint::Control);
            }
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                self.taint_memory_at(body.operand(op, 0), share, self.context.is_float(value));
                self.taint_all_unless_float(results, share);
            }
            OpKind::If | OpKind::Switch(_) => self.taint_control(op, share),
            OpKind::For { .. } | OpKind::ShareFor { .. } if index == 0 => {
                self.taint_control(op, share);
                self.taint_all_unless_float(&params(0)[..1], share);
            }
            OpKind::For { .. } => {
                self.taint_value(params(0)[index], share);
                self.taint_value(results[index - 1], share);
            }
            OpKind::Loop { .. } => self.taint_value(params(0)[index], share),
            OpKind::ParFor { dims, .. } => match index.checked_sub(*dims as usize) {
                Some(number) => self.taint_value(results[number], share),
                None => {
                    self.taint_control(op, share);
                    self.taint_all_unless_float(&params(0)[index..=index], share);
                }
            },
            OpKind::Spmd { .. } => self.taint_control(op, share),
            OpKind::Single { .. } => self.taint_value(results[index], share),
            OpKind::Yield => self.propagate_yield(op, index, share),
            OpKind::Repeat => self.propagate_repeat(op, index, share),
            OpKind::Alloca(_) => self.taint_size(Object::Stack(op)),
            OpKind::Call(_) | OpKind::Invoke(_) => self.propagate_argument(op, value, share),
            kind if kind.is_arithmetic() || matches!(kind, OpKind::Freeze) => {
                let made = self.context.is_float(value)
                    || matches!(kind, OpKind::Cast(_) | OpKind::ExtractValue(_));
                for result in results {
                    if made || !self.context.is_float(*result) || self.reveals_count(*result, share)
                    {
                        self.taint_value(*result, share);
                    }
                }
            }
            _ => self.escapes = true,
        }
    }

    /// Returns true if the selection of a float among constants reveals the thread count.
    fn reveals_count(&self, value: Value, share: Taint) -> bool {
        share == Taint::Value && self.context.is_float(value) && self.context.is_of_constants(value)
    }

    /// Records the address of an access.
    fn record_address(&mut self, ptr: Value) {
        let is_pointer = self.context.unit.types.is_ptr(self.context.body.ty(ptr));
        self.selects_external_location |= is_pointer && !self.context.is_private(ptr);
    }

    /// Taints the size of an object.
    fn taint_size(&mut self, object: Object) {
        if let Some(object) = self.context.points_to.find(object) {
            self.taint_object(object, None, false);
        }
    }

    fn propagate_yield(&mut self, end: Op, index: usize, share: Taint) {
        let body = self.context.body;
        let Some((region, owner)) = self.enclosing(end) else {
            unreachable!("`yield` ends the region of an op");
        };
        let first = body.op_regions(owner).first() == Some(&region);
        match body.kind(owner) {
            OpKind::For { .. } => {
                self.taint_value(body.region_params(region)[index + 1], share);
                self.taint_value(body.results(owner)[index], share);
            }
            // The combining region of a reduction.
            OpKind::ParFor { .. } if !first => {
                self.taint_all_unless_float(body.results(owner), share)
            }
            _ => self.taint_value(body.results(owner)[index], share),
        }
    }

    fn propagate_repeat(&mut self, end: Op, index: usize, share: Taint) {
        let Some((region, owner)) = self.enclosing(end) else {
            unreachable!("`repeat` ends the region of a loop");
        };
        let params = self.context.body.region_params(region);
        match index.checked_sub(1) {
            None => self.taint_control(owner, share),
            Some(number) if number < params.len() => self.taint_value(params[number], share),
            Some(number) => {
                self.taint_value(
                    self.context.body.results(owner)[number - params.len()],
                    share,
                );
            }
        }
    }

    fn enclosing(&self, op: Op) -> Option<(Region, Op)> {
        let region = self.context.body.parent(op)?;
        Some((region, self.context.body.owner(region)?))
    }

    /// Propagates the taint of a call argument.
    fn propagate_argument(&mut self, op: Op, value: Value, share: Taint) {
        let body = self.context.body;
        let results = body.results(op);
        match self.context.known(op) {
            Some(ExternalFn::Integer(_) | ExternalFn::Math(_) | ExternalFn::Reduce(_)) => {
                for result in results {
                    self.taint_value(*result, share);
                }
            }
            Some(ExternalFn::Marker(_)) => self.taint_all_unless_float(results, share),
            // The argument is the number that later queries return, and the later results are tracked.
            Some(ExternalFn::OpenMp(OpenMpFn::Setting)) => {}
            Some(ExternalFn::Memory(_)) => {
                self.taint_size(Object::Heap(op));
                for access in self.accesses(op) {
                    match access.ptr() {
                        Some(ptr) if self.context.is_private(ptr) => {
                            if access.kind == AccessKind::Write {
                                self.taint_memory_at(ptr, Taint::Control, true);
                            }
                        }
                        Some(_) => self.selects_external_location = true,
                        None => {}
                    }
                }
            }
            Some(ExternalFn::System(SystemFn::Print))
                if !self.context.unit.types.is_ptr(body.ty(value)) =>
            {
                let mut accesses = self.accesses(op).into_iter();
                self.escapes |= accesses.any(|a| a.is_clobber() && a.ptr().is_some());
                self.taint_all_unless_float(results, share);
            }
            _ => self.escapes = true,
        }
    }

    fn accesses(&self, op: Op) -> Vec<MemoryAccess> {
        let context = self.context;
        context.effects.of_op(context.unit, context.body, op)
    }

    /// Propagates control taint: the count decides which regions of `op` run, or how often.
    fn propagate_control(&mut self, op: Op, share: Taint) {
        let body = self.context.body;
        for (index, result) in body.results(op).iter().enumerate() {
            let branches = matches!(body.kind(op), OpKind::If | OpKind::Switch(_));
            let ends = body.op_regions(op).iter().filter_map(|r| body.last(*r));
            let mut chosen = ends.filter(|end| matches!(body.kind(*end), OpKind::Yield));
            let how = match branches
                && chosen.any(|end| self.context.is_constant(body.operand(end, index)))
            {
                true => share,
                false => Taint::Control,
            };
            match self.reveals_count(*result, share) {
                true => self.taint_value(*result, share),
                false => self.taint_unless_float(*result, how),
            }
        }
        for region in body.op_regions(op) {
            if !matches!(body.kind(op), OpKind::If | OpKind::Switch(_)) {
                self.taint_all_unless_float(body.region_params(*region), Taint::Control);
            }
            for inside in body.walk(*region) {
                self.record_op(inside);
                self.propagate_controlled_op(inside, op, share);
            }
        }
    }

    /// Propagates control taint of `control` to the nested op `op`.
    fn propagate_controlled_op(&mut self, op: Op, control: Op, share: Taint) {
        let body = self.context.body;
        let elsewhere = |ptr: Value| !self.context.is_private(ptr);
        match body.kind(op) {
            OpKind::Store(_) if self.context.is_float(body.operand(op, 0)) => {
                let (number, ptr) = (body.operand(op, 0), body.operand(op, 1));
                self.guards_external_access |= share == Taint::Value && elsewhere(ptr);
                if self.reveals_count(number, share)
                    && !self.context.initializes_array(ptr, op, control)
                {
                    self.taint_memory_at(ptr, share, true);
                }
            }
            OpKind::Store(_) => {
                let how = match self.context.is_constant(body.operand(op, 0)) {
                    true => share,
                    false => Taint::Control,
                };
                self.taint_memory_at(body.operand(op, 1), how, false);
            }
            OpKind::AtomicRmw(..) if self.context.is_float(body.operand(op, 1)) => {
                let (ptr, number) = (body.operand(op, 0), body.operand(op, 1));
                self.guards_external_access |= share == Taint::Value && elsewhere(ptr);
                if self.reveals_count(number, share) {
                    self.taint_memory_at(ptr, share, true);
                }
            }
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                self.taint_memory_at(body.operand(op, 0), Taint::Control, false);
            }
            OpKind::Load(_) => {
                self.guards_external_access |=
                    share == Taint::Value && elsewhere(body.operand(op, 0));
            }
            OpKind::Return | OpKind::Resume | OpKind::Foreign(_) => self.escapes = true,
            OpKind::Call(_) | OpKind::Invoke(_) => {
                for access in self.accesses(op) {
                    match access.place {
                        MemoryRegion::At(ptr) if !elsewhere(ptr) => {
                            if access.kind == AccessKind::Write {
                                self.taint_memory_at(ptr, Taint::Control, true);
                            }
                        }
                        MemoryRegion::Inaccessible | MemoryRegion::Errno | MemoryRegion::Frame => {}
                        _ if access.is_clobber() => self.escapes = true,
                        _ => self.guards_external_access |= share == Taint::Value,
                    }
                }
            }
            _ => {}
        }
    }

    /// Propagates taint from a memory object to the ops that access the object.
    fn propagate_object(&mut self, object: ObjectId, held: ObjectTaint) {
        let body = self.context.body;
        let touching = self.context.accessors.get(&object);
        for &op in touching.into_iter().flatten() {
            self.reaches_team |= self.context.in_team(op);
            let Some(share) = held.share else {
                continue;
            };
            self.record_op(op);
            match body.kind(op) {
                OpKind::Load(_) => {
                    for result in body.results(op) {
                        if held.floats || !self.context.is_float(*result) {
                            self.taint_value(*result, share);
                        }
                    }
                }
                OpKind::Store(_) => {}
                OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                    self.taint_all_unless_float(body.results(op), share);
                }
                _ => self.escapes |= self.accesses(op).iter().any(|a| a.kind == AccessKind::Read),
            }
        }
    }
}
