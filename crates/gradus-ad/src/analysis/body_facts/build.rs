//! Construction of the fact tables: runs the analyses once, and one walk over the body per table.

use super::invertible_inductions::find_invertible;
use super::{AddressWords, AlternatingMemory, BodyFacts, FloatBitRange, PlanChoices};
use crate::Options;
use crate::analysis::program_facts::ProgramFacts;
use crate::emit::masked_ops::match_masked_access;
use crate::variant::indirect_calls::can_dispatch;
use crate::variant::{ArgActivity, Mode, ResultActivity, TapeOwner, Variant, Versions};
use gradus_analysis::{
    Alias, AliasOptions, BodyActivity, Clobbers, ExitClobbers, LaneKind, MemoryAccess, Object,
    ShadowState, Variance, variant_findings,
};
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    Body, ConstId, ConstKind, Diagnostic, FuncId, GlobalId, Op, OpKind, Severity, Type, Unit, Value,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Inputs of the tables.
pub(crate) struct FactsBuilder<'a> {
    pub unit: &'a Unit,
    pub closure: &'a ProgramFacts,
    pub variant: &'a Variant,
    pub options: &'a Options,
    /// Choices of an earlier plan.
    pub choices: PlanChoices,
}

impl<'a> FactsBuilder<'a> {
    /// Builds the tables.
    ///
    /// # Errors
    /// Diagnostics for a variant that cannot be differentiated.
    pub fn build<'b>(&self, body: &'b Body) -> Result<BodyFacts<'b>, Vec<Diagnostic>> {
        let (view, classes) = (self.closure.view(self.unit), &self.closure.classes);
        let variant = self.analysed_variant();
        let activity = BodyActivity::of(view, classes, &variant);
        let errors = variant_findings(view, classes, &variant, &activity);
        if errors.iter().any(|f| f.severity == Severity::Error) {
            return Err(errors);
        }
        let options = self.alias_options(body);
        let alias = self.alias(body, &options);
        let clobbers = Clobbers::of(&alias, &self.closure.effects, self.after_end());
        let mut facts = BodyFacts {
            body,
            func: self.variant.func,
            width: self.variant.width as usize,
            active: body.values.ids().map(|v| activity.active(v)).collect(),
            shadows: self.shadows(body, &activity),
            float_bit_ranges: HashMap::new(),
            aggregate_floats: HashMap::new(),
            pointer_bit_ranges: HashSet::new(),
            address_words: AddressWords::default(),
            shadowed_globals: self.find_shadowed_globals(body),
            stable_loads: HashSet::new(),
            clobbered_loads: HashMap::new(),
            copies: HashMap::new(),
            alternating_stores: HashMap::new(),
            integer_stores: HashSet::new(),
            converted_numbers: self.own_ops(classes.stores_of_converted_numbers()),
            tested_conversions: self.own_ops(classes.converted_words()),
            tested_names: self.own_ops(classes.converted_names()),
            deferred_frees: self.find_deferred_frees(body, &alias),
            private_block_addresses: HashMap::new(),
            outliving_blocks: HashSet::new(),
            heap_allocas: HashSet::new(),
            word_offsets: self.word_offsets(body),
            lazy_shadow_addresses: HashSet::new(),
            varying_loops: HashMap::new(),
            reversed_ops: HashSet::new(),
            outer: HashMap::new(),
            calls: HashMap::new(),
            recomputed_calls: HashSet::new(),
            read_only_calls: HashSet::new(),
            overwritten: HashMap::new(),
            pointer_targets: HashMap::new(),
            unhandled_calls: HashSet::new(),
            null_calls: HashSet::new(),
            dead_stores: HashSet::new(),
            noreturn_ops: find_noreturn_ops(body, &alias),
            unwinds_after_write: HashSet::new(),
            exclusive_adds: HashSet::new(),
            tested_global_loads: HashSet::new(),
            snapshots: Vec::new(),
            serving_snapshot: HashMap::new(),
            invertible_inductions: HashMap::new(),
            reloadable_carried: HashMap::new(),
            recomputable_loops: BTreeMap::new(),
            recomputed_loops: self.choices.recomputed_loops.clone(),
        };
        facts.outliving_blocks = self.find_outliving_blocks(facts.body, &facts.deferred_frees);
        self.drop_unneeded_deferrals(&mut facts);
        self.find_heap_allocas(&mut facts);
        self.lanes(&mut facts);
        self.find_tested_global_loads(&mut facts);
        self.collect_memory_ops(&mut facts, &clobbers);
        if self.options.snapshots {
            self.find_snapshots(&mut facts, &alias, &clobbers);
        }
        self.find_dead_stores(&mut facts, &alias, &clobbers);
        self.calls(&mut facts, &activity, &clobbers);
        self.find_lazy_shadows(&mut facts);
        self.find_private_blocks(&mut facts);
        // Runs after `calls`: derivatives of callees that read memory also accumulate into shadow memory.
        self.find_exclusive_adds(&mut facts, &alias);
        if self.options.invert_inductions {
            facts.invertible_inductions = find_invertible(self.unit, body);
            facts.reloadable_carried =
                crate::analysis::body_facts::reloadable_carried::find_reloadable(self.unit, &facts);
        }
        self.collect_variance(&mut facts, &clobbers);
        let reverse = self.variant.mode != Mode::Forward;
        if self.options.recompute_loops && reverse && self.choices.recomputed_loops.is_empty() {
            self.find_recomputable_loops(&mut facts, &alias, &clobbers);
        }
        if self.options.snapshots && reverse {
            self.find_in_place_snapshots(&mut facts, &alias, &clobbers);
        }
        self.collect_reversed_ops(&mut facts);
        self.collect_outer_active(&mut facts);
        Ok(facts)
    }

    fn shadows(&self, body: &Body, activity: &BodyActivity) -> Vec<ShadowState> {
        let values = body.values.ids();
        values.map(|v| self.shadow(activity, v)).collect()
    }

    pub(super) fn alias<'b>(&'b self, body: &'b Body, options: &AliasOptions) -> Alias<'b> {
        let effects = &self.closure.effects;
        Alias::new(self.unit, Some(self.variant.func), body, effects, options)
    }

    /// Returns the variant in the form of activity analysis.
    fn analysed_variant(&self) -> gradus_analysis::Variant {
        gradus_analysis::Variant {
            func: self.variant.func,
            args: self.variant.args.iter().map(|a| in_analysis(*a)).collect(),
            result: self.variant.result.is_active(),
        }
    }

    /// Returns the globals with shadows whose addresses are parts of a body's aggregate constants.
    fn find_shadowed_globals(&self, body: &Body) -> HashSet<GlobalId> {
        let (view, classes) = (self.closure.view(self.unit), &self.closure.classes);
        let aggregate =
            |id: &ConstId| matches!(self.unit.constant(*id).kind, ConstKind::Aggregate(_));
        let constants = body.values.ids().filter_map(|v| body.as_const(v));
        let mut work: Vec<ConstId> = constants.filter(aggregate).collect();
        let (mut seen, mut found) = (HashSet::new(), HashSet::new());
        while let Some(id) = work.pop() {
            match &self.unit.constant(id).kind {
                ConstKind::Aggregate(parts) if seen.insert(id) => work.extend(parts),
                ConstKind::Global { global, .. }
                    if classes.global(view, *global) != ShadowState::None =>
                {
                    found.insert(*global);
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the shadow state of a value. Only addresses, and values that carry addresses, have shadows.
    fn shadow(&self, activity: &BodyActivity, value: Value) -> ShadowState {
        activity.shadow(value)
    }

    pub(super) fn after_end(&self) -> ExitClobbers {
        match self.variant.mode {
            Mode::Forward | Mode::Combined => ExitClobbers::default(),
            Mode::Augmented | Mode::Reverse => ExitClobbers {
                params: self.variant.overwritten.clone(),
                others: true,
                frame: false,
            },
        }
    }

    pub(super) fn known(&self, body: &Body, op: Op) -> Option<ExternalFn> {
        self.unit.known_callee(body, op)
    }
    fn lanes(&self, facts: &mut BodyFacts<'_>) {
        for value in facts.body.values.ids() {
            let ty = facts.body.ty(value);
            let is_aggregate = matches!(
                self.unit.types.get(ty),
                Type::Struct { .. } | Type::Array { .. }
            );
            if self.unit.types.int_bits(ty).is_none() && !is_aggregate {
                continue;
            }
            let lanes = self.closure.memory_cells.lanes(self.variant.func, value);
            let floats: Vec<FloatBitRange> = lanes
                .iter()
                .filter_map(|lane| match lane.kind {
                    LaneKind::Float(kind) => Some(FloatBitRange {
                        start_bit: lane.bit,
                        kind,
                    }),
                    LaneKind::Pointer => None,
                })
                .collect();
            if is_aggregate {
                if !floats.is_empty() {
                    facts.aggregate_floats.insert(value, floats);
                }
                continue;
            }
            if lanes.iter().any(|lane| lane.kind == LaneKind::Pointer) {
                facts.pointer_bit_ranges.insert(value);
            }
            let words = &self.closure.memory_cells;
            if words.is_address_word(self.unit, facts.body, self.variant.func, value) {
                facts.address_words.values.insert(value);
            }
            if !floats.is_empty() {
                facts.float_bit_ranges.insert(value, floats);
            }
        }
    }

    /// Records recomputable loads, the clobber cause of all other loads, the kinds of cells moved by copies, and the
    /// stores to memory that holds floats and pointers.
    fn collect_memory_ops(&self, facts: &mut BodyFacts<'_>, clobbers: &Clobbers<'_>) {
        for op in facts.body.walk(facts.body.root()) {
            match facts.body.kind(op) {
                OpKind::Load(_) => match self.load_clobber(facts, clobbers, op) {
                    None => _ = facts.stable_loads.insert(op),
                    Some(lost) => _ = facts.clobbered_loads.insert(op, lost),
                },
                OpKind::Store(_) => {
                    let operands = [facts.body.operand(op, 0), facts.body.operand(op, 1)];
                    self.note_alternating_store(facts, op, operands);
                    self.note_integer_store(facts, op);
                    self.note_address_word_clear(facts, op, operands);
                }
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    if let Some(ExternalFn::Memory(_)) = self.known(facts.body, op) {
                        let kind = self.closure.memory_cells.copy_kind(
                            self.unit,
                            &self.closure.memory,
                            facts.body,
                            self.variant.func,
                            op,
                        );
                        facts.copies.insert(op, kind);
                    } else if let Some(access) = match_masked_access(self.unit, facts.body, op)
                        && access.is_store()
                    {
                        self.note_alternating_store(facts, op, [access.data, access.ptr]);
                    }
                }
                _ => {}
            }
        }
    }

    /// Records whose memory a store of `value` to `ptr` writes, if the memory holds floats and pointers at different
    /// times.
    fn note_alternating_store(&self, facts: &mut BodyFacts<'_>, op: Op, [value, ptr]: [Value; 2]) {
        let (memory, cells) = (&self.closure.memory, &self.closure.memory_cells);
        let ty = facts.body.ty(value);
        let bytes = self.unit.layout.store_bytes(self.unit, ty);
        let targets = memory.targets(self.variant.func, ptr);
        let mut alternating = targets
            .iter()
            .filter(|place| cells.may_hold_floats_and_pointers(memory, **place, bytes))
            .peekable();
        if alternating.peek().is_none() {
            // Not an error: the memory holds floats only, or pointers only.
            return;
        }
        let whose = match alternating.any(|place| cells.is_visible(place.class)) {
            true => AlternatingMemory::Caller,
            false => AlternatingMemory::Own,
        };
        facts.alternating_stores.insert(op, whose);
    }

    /// Records a store of an integer to a word that may hold an address at another time.
    fn note_address_word_clear(&self, facts: &mut BodyFacts<'_>, op: Op, [value, ptr]: [Value; 2]) {
        let (memory, cells) = (&self.closure.memory, &self.closure.memory_cells);
        let is_integer = self.unit.types.int_bits(facts.body.ty(value)).is_some()
            && cells.lanes(self.variant.func, value).is_empty();
        let mut targets = memory.targets(self.variant.func, ptr).iter();
        if is_integer
            && !is_planted(Mutant::AddressWordKeepsShadow)
            && targets.any(|place| cells.may_be_address_word(memory, *place))
        {
            facts.address_words.clears.insert(op);
        }
    }

    /// Returns the ops of the variant's function among ops of the call graph.
    fn own_ops(&self, ops: &HashSet<(FuncId, Op)>) -> HashSet<Op> {
        let own = ops.iter().filter(|(func, _)| *func == self.variant.func);
        own.map(|(_, op)| *op).collect()
    }

    /// Records a store of an integer to words that may hold floats at another time.
    fn note_integer_store(&self, facts: &mut BodyFacts<'_>, op: Op) {
        let (memory, cells) = (&self.closure.memory, &self.closure.memory_cells);
        let value = facts.body.operand(op, 0);
        let ty = facts.body.ty(value);
        let is_integer = self
            .unit
            .types
            .int_bits(self.unit.types.scalar(ty))
            .is_some()
            && (facts.stores_converted_number(op) || !facts.holds_float(self.unit, value))
            && !facts.holds_pointer(self.unit, value);
        if is_integer && cells.integer_in_words(self.unit, memory, (self.variant.func, op)) {
            facts.integer_stores.insert(op);
        }
    }

    /// Returns the allocations whose blocks outlive the call.
    ///
    /// Memory of the caller may hold the address of such a block. In addition, one of two conditions holds:
    /// all frees of the block's alias set belong to deferred frees of this function, or some block of the
    /// alias set may outlive the call that allocates it. A free of such a block leaks the shadow, which is no
    /// longer required. The shadow of a block that a variable owns ends with the derivative. Blocks that a requested
    /// derivative returns with their shadows also outlive the call: the caller frees both.
    fn find_outliving_blocks(&self, body: &Body, deferred: &HashMap<Op, Op>) -> HashSet<Op> {
        let classes = &self.closure.classes;
        let owned = self.closure.owned_blocks(self.unit);
        let others = |site: &(FuncId, Op)| {
            site.0 == self.variant.func && deferred.values().any(|free| *free == site.1)
        };
        let left = |op: &Op| {
            let block = gradus_analysis::visible_call_result(body, *op);
            let remains = |class| {
                classes.is_result_reachable(class)
                    || classes.escapes(class)
                        && !owned.contains(&class)
                        && (classes.frees(class).iter().all(others)
                            || !classes.is_always_freed(class))
            };
            let known = self.known(body, *op);
            matches!(known, Some(ExternalFn::Memory(function)) if function.allocation().is_some())
                && !deferred.contains_key(op)
                && block.is_some_and(|block| {
                    (self.closure.memory).may_point_into(self.variant.func, block, remains)
                })
        };
        body.walk(body.root()).filter(left).collect()
    }

    /// Records stores whose memory is never read: not by the function, and not by the caller, by `dupnoneed`.
    fn find_dead_stores(
        &self,
        facts: &mut BodyFacts<'_>,
        alias: &Alias<'_>,
        clobbers: &Clobbers<'_>,
    ) {
        const QUERIES_MAX: usize = 1 << 20;
        let body = facts.body;
        let unneeded = |argument: &ArgActivity| *argument == ArgActivity::DupNoNeed;
        if self.variant.mode == Mode::Forward || !self.variant.args.iter().any(unneeded) {
            return;
        }
        let writes_unneeded = |op: &Op| match body.kind(*op) {
            OpKind::Store(access) if access.is_plain() => {
                let targets = alias.points_to.targets(body, body.operand(*op, 1));
                let [target] = targets else { return false };
                match alias.points_to.object(target.object) {
                    Object::Param(number) => {
                        self.variant.args.get(number as usize).is_some_and(unneeded)
                    }
                    _ => false,
                }
            }
            _ => false,
        };
        let stores: Vec<Op> = body.walk(body.root()).filter(writes_unneeded).collect();
        let reads: Vec<Op> = body
            .walk(body.root())
            .filter(|op| !clobbers.reads_of(*op).is_empty())
            .collect();
        if stores.len() * reads.len() > QUERIES_MAX {
            return;
        }
        let effects = &self.closure.effects;
        for store in stores {
            let writes = effects.of_op(self.unit, body, store);
            let read = reads
                .iter()
                .flat_map(|op| clobbers.reads_of(*op))
                .any(|read| {
                    writes
                        .iter()
                        .any(|write| alias.may_alias_any_iteration(read, write))
                });
            if !read {
                facts.dead_stores.insert(store);
            }
        }
    }

    /// Finds the snapshots that could serve loads from overwritten memory.
    fn find_snapshots(
        &self,
        facts: &mut BodyFacts<'_>,
        alias: &Alias<'_>,
        clobbers: &Clobbers<'_>,
    ) {
        let body = facts.body;
        let is_unstable = |op: &Op| match body.kind(*op) {
            OpKind::Load(access) => access.is_plain() && !facts.stable_loads.contains(op),
            _ => false,
        };
        let unstable: Vec<Op> = body.walk(body.root()).filter(is_unstable).collect();
        let finder = super::snapshots::SnapshotFinder {
            unit: self.unit,
            body,
            alias,
            clobbers,
        };
        (facts.snapshots, facts.serving_snapshot) = finder.find(&unstable);
        // A load fills the snapshot in two cases only. In a recomputed loop, the iteration has just written
        // the memory, and the processor's cache still holds it. In a loop with a serial sum, the sum limits
        // the speed. Elsewhere a bulk copy is faster than single stores.
        for number in 0..facts.snapshots.len() {
            let anchor = facts.snapshots[number].anchor;
            let replayed = |region| facts.enclosing_recomputed_loop(region).is_some();
            let near = body.parent(anchor).is_some_and(replayed);
            if !near
                && !crate::analysis::body_facts::loop_info::has_serial_reduction(
                    self.unit, body, anchor,
                )
            {
                facts.snapshots[number].filler = None;
            }
        }
    }

    /// Returns, per argument of a call, whether the memory that the call reads behind the argument may change
    /// before the reverse pass. The entry of an argument without reads is true and without consequence.
    fn args_overwritten_after(
        &self,
        facts: &BodyFacts<'_>,
        clobbers: &Clobbers<'_>,
        op: Op,
    ) -> Vec<bool> {
        let args = self.unit.call_args(facts.body, op);
        let region = facts.body.parent(op);
        let iteration = region.and_then(|region| facts.enclosing_recomputed_loop(region));
        let mut found = vec![true; args.len()];
        for (number, arg) in args.iter().enumerate() {
            let behind = |read: &&MemoryAccess| read.ptr() == Some(*arg);
            let mut reads = clobbers.reads_of(op).iter().filter(behind).peekable();
            found[number] = reads.peek().is_none()
                || !reads.all(|read| {
                    let fate = clobbers.fate_after_call(op, read, iteration);
                    self.clobber_of_fate(facts, &fate).is_none()
                        || is_planted(Mutant::ClobberedAfterCallReread)
                });
        }
        found
    }

    fn calls(&self, facts: &mut BodyFacts<'_>, activity: &BodyActivity, clobbers: &Clobbers<'_>) {
        for op in facts.body.walk(facts.body.root()) {
            let Some(call) = activity.call(op).filter(|call| call.active) else {
                continue;
            };
            let catches = |op: Op| {
                let handler = facts.body.op_regions(op).get(1).copied();
                let end = handler.and_then(|region| facts.body.last(region));
                end.is_some_and(|end| matches!(facts.body.kind(end), OpKind::Yield))
            };
            let (view, closure) = (self.closure.view(self.unit), self.closure);
            // The reverse pass never reaches a call on a path that ends the program or rethrows.
            if self.variant.mode != Mode::Forward
                && catches(op)
                && !facts.is_on_noreturn_path(op)
                && closure.thrown.may_throw_after_write(
                    view,
                    &closure.classes,
                    self.variant.func,
                    facts.body,
                    op,
                )
            {
                facts.unwinds_after_write.insert(op);
            }
            let callee = self.unit.callee(facts.body, op);
            if let Some(targets) = self.find_pointer_targets(facts.body, op) {
                facts.pointer_targets.insert(op, targets);
                facts.calls.insert(op, call.clone());
                continue;
            }
            if callee.is_none() && self.is_never_made(facts.body, op) {
                facts.null_calls.insert(op);
                continue;
            }
            let opaque = |func: FuncId| {
                self.unit.functions[func].body.is_none() || self.unit.is_tape_function(func)
            };
            if callee.is_none_or(opaque) {
                if !self.has_reverse_rule(facts.body, op) {
                    facts.unhandled_calls.insert(op);
                }
                continue;
            }
            let overwritten = self.args_overwritten_after(facts, clobbers, op);
            facts.overwritten.insert(op, overwritten);
            let effects = self.closure.effects.of_call(self.unit, facts.body, op);
            let result_shadowed = call.result.shadow != ShadowState::None;
            let silent = !effects.writes_memory()
                && !effects.frees_other
                && !effects.may_throw
                && !effects.params.iter().any(|p| p.frees);
            let further = callee.is_some_and(|func| {
                let ty = self.unit.functions[func].ty;
                self.unit.types.is_variadic(ty)
            });
            if self.options.recompute_calls
                && silent
                && !further
                && !result_shadowed
                && (self.load_clobber(facts, clobbers, op).is_none()
                    || is_planted(Mutant::ClobberedCallRecomputed))
            {
                facts.recomputed_calls.insert(op);
                if !effects.inaccessible.writes && !effects.calls_unknown {
                    facts.read_only_calls.insert(op);
                }
            }
            facts.calls.insert(op, call.clone());
        }
    }

    /// Returns true if a call goes through a pointer that can only be null.
    fn is_never_made(&self, body: &Body, op: Op) -> bool {
        let memory = &self.closure.memory;
        body.kind(op).call_info().is_some()
            && memory.callees(self.variant.func, op).is_empty()
            && !memory.may_call_unknown(self.variant.func, op)
    }

    /// Returns the possible callees of an indirect call, if the dispatch function supports the signature.
    fn find_pointer_targets(&self, body: &Body, op: Op) -> Option<Vec<(FuncId, bool)>> {
        let signature = body.kind(op).call_info()?.signature;
        let callees = self.closure.memory.callees(self.variant.func, op);
        if callees.is_empty() || !can_dispatch(self.unit, signature) {
            return None;
        }
        let active = |func: FuncId| {
            self.unit.functions[func].body.is_some()
                && self.closure.classes.is_active_function(func)
        };
        Some(callees.iter().map(|func| (*func, active(*func))).collect())
    }

    /// Returns true if a call of a known external function has its own reverse rule.
    fn has_reverse_rule(&self, body: &Body, op: Op) -> bool {
        let by_kind = matches!(
            self.known(body, op),
            Some(
                ExternalFn::Math(_)
                    | ExternalFn::MathOut(_)
                    | ExternalFn::Complex(_)
                    | ExternalFn::Reduce(_)
                    | ExternalFn::Masked(_)
                    | ExternalFn::Memory(_)
                    | ExternalFn::Marker(_)
            )
        );
        by_kind
            || self
                .known(body, op)
                .is_some_and(|known| known.effects().inactive)
    }

    /// Records the loops in which each value varies.
    fn collect_variance(&self, facts: &mut BodyFacts<'_>, clobbers: &Clobbers<'_>) {
        let variance = Variance::of(clobbers, &self.closure.effects);
        for value in facts.body.values.ids() {
            let loops = variance.loops(value);
            if !loops.is_empty() {
                facts.varying_loops.insert(value, loops);
            }
        }
    }

    /// Records the ops whose reversal emits code, and the region ops that enclose them.
    fn collect_reversed_ops(&self, facts: &mut BodyFacts<'_>) {
        let body = facts.body;
        for op in body.walk(body.root()) {
            if facts.is_on_noreturn_path(op)
                || has_no_normal_path(body, op)
                || !self.needs_reversal(facts, op)
            {
                continue;
            }
            let mut at = Some(op);
            while let Some(op) = at.filter(|op| facts.reversed_ops.insert(*op)) {
                at = body.parent_op(op);
            }
        }
    }

    fn needs_reversal(&self, facts: &BodyFacts<'_>, op: Op) -> bool {
        let body = facts.body;
        if body.results(op).iter().any(|v| facts.is_active(*v)) {
            return true;
        }
        match body.kind(op) {
            OpKind::Store(_) => {
                facts.has_shadow(body.operand(op, 1))
                    && (facts.holds_float(self.unit, body.operand(op, 0))
                        || facts.is_integer_in_words(op)
                        || facts.clears_shadow_in_reverse(self.unit, op, body.operand(op, 0)))
            }
            OpKind::AtomicRmw(..) => {
                facts.has_shadow(body.operand(op, 0))
                    && facts.holds_float(self.unit, body.operand(op, 1))
            }
            OpKind::Alloca(_) => facts.is_on_heap(op),
            OpKind::Call(_) | OpKind::Invoke(_) => match self.known(body, op) {
                Some(ExternalFn::Masked(_)) => body.operands(op).any(|v| facts.has_shadow(v)),
                Some(ExternalFn::Memory(_)) => {
                    let shadowed = |v: &Value| facts.has_shadow(*v);
                    self.known(body, op) == Some(ExternalFn::Memory(MemoryFn::TapePush))
                        || facts.deferred_frees.contains_key(&op)
                        || body.results(op).iter().any(shadowed)
                        || body.operands(op).any(|v| shadowed(&v))
                }
                _ => facts.is_active_call(op) || facts.is_unhandled_call(op),
            },
            _ => false,
        }
    }

    /// Records the active values that regions use from outside.
    fn collect_outer_active(&self, facts: &mut BodyFacts<'_>) {
        let body = facts.body;
        let mut seen: HashSet<(Op, Value)> = HashSet::new();
        let active: Vec<Value> = body.values.ids().filter(|v| facts.is_active(*v)).collect();
        for value in active {
            let Some(home) = body.region_of(value) else {
                continue;
            };
            let users: Vec<Op> = body.uses(value).map(|u| u.op).collect();
            for user in users.into_iter().rev() {
                if !body.kind(user).is_terminator() && !facts.reversed_ops.contains(&user) {
                    continue;
                }
                let mut region = body.parent(user);
                while let Some(inner) = region.filter(|r| *r != home) {
                    let Some(owner) = body.owner(inner) else {
                        break;
                    };
                    if !seen.insert((owner, value)) {
                        break;
                    }
                    facts.outer.entry(owner).or_default().push(value);
                    region = body.parent(owner);
                }
            }
        }
    }
}

/// Returns true if an invoke has no normal path.
fn has_no_normal_path(body: &Body, op: Op) -> bool {
    let end = body.op_regions(op).first().and_then(|r| body.last(*r));
    matches!(body.kind(op), OpKind::Invoke(_))
        && end.is_some_and(|end| !matches!(body.kind(end), OpKind::Yield))
}

fn in_analysis(activity: ArgActivity) -> gradus_analysis::ArgActivity {
    let (active, shadow) = match activity {
        ArgActivity::Const => (false, ShadowState::None),
        ArgActivity::Dup | ArgActivity::DupNoNeed => (false, ShadowState::Real),
        ArgActivity::MaybeDup => (false, ShadowState::Maybe),
        ArgActivity::Active => (true, ShadowState::None),
    };
    gradus_analysis::ArgActivity { active, shadow }
}

impl BodyFacts<'_> {
    /// Returns the variant of the callee that a call requires.
    pub fn call_variant(
        &self,
        unit: &Unit,
        op: Op,
        callee: FuncId,
        mode: Mode,
        caller: &Variant,
    ) -> Variant {
        let params = unit.param_types(unit.functions[callee].ty).len();
        let call = self.calls.get(&op);
        let of_arg = |i: usize| {
            call.and_then(|c| c.args.get(i))
                .copied()
                .unwrap_or_default()
        };
        let args: Vec<ArgActivity> = (0..params)
            .map(|i| match (of_arg(i).shadow, of_arg(i).active) {
                (ShadowState::Real, _) => ArgActivity::Dup,
                (ShadowState::Maybe, _) => ArgActivity::MaybeDup,
                (ShadowState::None, true) => ArgActivity::Active,
                (ShadowState::None, false) => ArgActivity::Const,
            })
            .collect();
        let result = self.call_result(op);
        let result = match result {
            Some(value) if self.has_shadow(value) => {
                match self.is_active(value) && self.holds_float(unit, value) {
                    true => ResultActivity::Both,
                    false => ResultActivity::Dup,
                }
            }
            Some(value) if self.is_active(value) && self.holds_float(unit, value) => {
                ResultActivity::Active
            }
            _ => ResultActivity::Const,
        };
        let split = matches!(mode, Mode::Augmented | Mode::Reverse);
        Variant {
            func: callee,
            mode,
            width: caller.width,
            overwritten: if split {
                let known = self.overwritten.get(&op).into_iter().flatten().copied();
                known
                    .chain(std::iter::repeat(true))
                    .take(args.len())
                    .collect()
            } else {
                Vec::new()
            },
            args,
            result,
            primal_result: true,
            tape: TapeOwner::Derivative,
            versions: Versions::RuntimeCheck,
            strong_zero: caller.strong_zero,
            tangents: caller.tangents,
            concurrent: false,
            outermost: false,
        }
    }
}

/// Returns the ops in no-return regions.
fn find_noreturn_ops(body: &Body, alias: &Alias<'_>) -> HashSet<Op> {
    let is_noreturn = |op: &Op| alias.nest.enclosing_noreturn_region(*op).is_some();
    body.walk(body.root()).filter(is_noreturn).collect()
}
