//! Diagnostics for code that cannot be differentiated: one per cause, with the user's line.
//!
//! The checks refuse and never guess. Diagnostics about memory are created once per request, diagnostics
//! about ops once per variant. An op refused in two variants yields equal diagnostics, which [`distinct`]
//! merges.

use crate::activity::flow_graph;
use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::activity::values::{BodyActivity, Variant};
use crate::call_graph::Callee;
use crate::calls::printf_formats;
use crate::calls::varargs;
use crate::cfg::no_return::NoReturnRegions;
use crate::checks::finding::{at, name_of};
use crate::checks::float_bits;
use crate::checks::unknown_callee::flang_advice;
use crate::checks::unknown_callees;
use crate::checks::variadic_structures;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, CellRef};
use crate::scev::poly;
use crate::type_analysis::bit_ranges;
use crate::type_analysis::type_map::{BitRange, CopyKind, LaneKind};
use crate::type_analysis::whole_float_moves;
use crate::type_analysis::whole_float_moves::element_bit;
use crate::types::lattice;
use crate::view::View;
use gradus_ir::externals::{
    CompilerIntrinsic, Effects, ExternalFn, GpuFn, IntFn, MemoryFn, SystemFn,
};
use gradus_ir::{
    AttrSet, AttrValue, Body, CastOp, Code, ConstKind, Diagnostic, FloatKind, FuncId, Op, OpKind,
    RmwOp, Type, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Removes duplicate diagnostics and keeps the order.
fn distinct(list: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    list.into_iter()
        .filter(|d| {
            let label = d.labels.first().map(|l| l.span.clone());
            seen.insert((d.code, label, d.message.clone(), d.function.clone()))
        })
        .collect()
}

// ---- ops -----------------------------------------------------------------------------------

/// Gathers the diagnostics of a variant.
pub(super) struct Finder<'a> {
    pub(super) facts: View<'a>,
    pub(super) classes: &'a MemoryActivity,
    pub(super) func: FuncId,
    pub(super) body: &'a Body,
    activity: &'a BodyActivity,
    /// True if the front end names the types of the body's accesses.
    pub(super) names_accesses: bool,
    list: Vec<Diagnostic>,
}

/// Returns the reasons against differentiating a variant, without duplicates. Empty if there are none.
pub fn body_findings(
    facts: View<'_>,
    classes: &MemoryActivity,
    variant: &Variant,
    activity: &BodyActivity,
) -> Vec<Diagnostic> {
    let Some(body) = facts.unit.functions[variant.func].body.as_deref() else {
        unreachable!("the function of a variant has a body");
    };
    let mut finder = Finder {
        facts,
        classes,
        func: variant.func,
        body,
        activity,
        names_accesses: lattice::has_tbaa_names(facts.unit, body),
        list: Vec::new(),
    };
    finder.check_byval_params();
    let lost = NoReturnRegions::of(facts.unit, body);
    for op in body.walk(body.root()) {
        if !lost.contains(body, op) {
            finder.check_op(op);
            finder.check_number_as_pointer(op);
        }
    }
    let mut list = distinct(finder.list);
    unknown_callees::attribute_to_unknown_callees(facts, classes, &mut list);
    list
}

impl Finder<'_> {
    pub(super) fn refuse(&mut self, op: Op, code: Code, message: impl Into<String>, help: &str) {
        let finding = at(self.facts.unit, self.func, self.body, op, code, message);
        self.list.push(finding.help(help));
    }
    /// Refuses `byval` structures with active floats that the function modifies: the copy would need its
    /// own shadow.
    fn check_byval_params(&mut self) {
        let (unit, body) = (self.facts.unit, self.body);
        let function = &unit.functions[self.func];
        for (index, &param) in body.params().iter().enumerate() {
            let by_value = unit.attrs(function.attrs).param(index, "byval").is_some();
            let changed = self.may_point_into(param, |class| {
                self.classes.holds_active_floats(class) && self.classes.is_written(class)
            });
            if by_value && changed {
                let message = "the function modifies a structure that is passed by value, and the copy has no shadow";
                let finding = Diagnostic::error(Code::NoDerivative, message)
                    .in_function(name_of(unit, self.func))
                    .at(function.span.clone(), "in this function")
                    .help("pass the structure by address, or copy the structure to a local variable first");
                self.list.push(finding);
            }
        }
    }
    pub(super) fn may_point_into(&self, ptr: Value, has: impl FnMut(AliasSetId) -> bool) -> bool {
        self.facts.memory.may_point_into(self.func, ptr, has)
    }
    /// Returns true if memory behind `ptr` may carry derivatives of floats.
    pub(super) fn points_to_active(&self, ptr: Value) -> bool {
        let floats = self.may_point_into(ptr, |class| self.reaches_floats(class));
        floats && self.activity.shadow(ptr).is_some()
    }
    /// Returns true if an alias set has a shadow and is not known to hold integers only.
    fn reaches_floats(&self, class: AliasSetId) -> bool {
        let seen = self.facts.words.types_of_set(class);
        let only_integers = seen.has_integer() && !seen.has_float() && !seen.has_pointer();
        !only_integers && self.classes.state(class) != ShadowPresence::Inactive
    }

    /// Returns true if an access moves an integer that is a part of a pointer to floats. No analysis follows the part:
    /// whether the floats are active is not known.
    fn moves_part_of_pointer(&self, ptr: Value, value: Value) -> bool {
        let (unit, memory) = (self.facts.unit, self.facts.memory);
        let word = unit.layout.pointer_bytes as i64;
        let bits = unit.types.int_bits(self.body.ty(value));
        let leads = |place: &CellRef| {
            let inside = place.offset_bytes.rem_euclid(word);
            let start = CellRef {
                offset_bytes: place.offset_bytes - inside,
                ..*place
            };
            let mut targets = memory.pointee(start).iter();
            targets.any(|target| self.facts.words.types_of_set(target.class).has_float())
        };
        bits.is_some_and(|bits| i64::from(bits) < word * 8)
            && memory.targets(self.func, ptr).iter().any(leads)
    }
    /// Refuses a pointer that is assembled from bits of an address of active memory: nobody assembles the shadow.
    fn check_assembled(&mut self, op: Op, pointer: Value) {
        if self.facts.memory.is_assembled(self.func, pointer)
            && let Some((unknown, escaped)) = self.facts.memory.unknown_memory()
            && escaped
                .into_iter()
                .chain([unknown])
                .any(|class| self.reaches_floats(class))
        {
            self.refuse_address_arithmetic(op);
        }
    }
    fn check_op(&mut self, op: Op) {
        let (body, unit) = (self.body, self.facts.unit);
        for &result in body.results(op) {
            self.check_value(op, result);
            self.check_assembled(op, result);
        }
        match body.kind(op) {
            OpKind::Load(access) | OpKind::Store(access) if !access.is_plain() => {
                let (ptr, value) = match body.kind(op) {
                    OpKind::Load(_) => (body.operand(op, 0), body.result(op)),
                    _ => (body.operand(op, 1), body.operand(op, 0)),
                };
                if self.activity.active(value) || self.moves_part_of_pointer(ptr, value) {
                    self.refuse_atomic(op);
                }
            }
            OpKind::AtomicRmw(..)
                if self.is_float_update(op, 1) && !is_float_accumulation(unit, body, op) =>
            {
                self.refuse_atomic(op)
            }
            OpKind::CmpXchg { .. } if self.is_float_update(op, 2) => self.refuse_atomic(op),
            OpKind::Foreign(_) => {
                let operands = body.operands(op);
                let reached = operands
                    .into_iter()
                    .any(|v| self.activity.varied(v) || self.points_to_active(v));
                if reached {
                    let message = "an LLVM instruction without a derivative works on active values";
                    self.refuse(op, Code::NoDerivative, message, HELP_INACTIVE);
                }
            }
            OpKind::Binary(binary) if !binary.is_float() => {
                let result = body.result(op);
                let lanes = self.facts.words.lanes(self.func, result);
                let moves = whole_float_moves::moves_whole_ranges(unit, body, op, lanes);
                let active = self.activity.active(result) && !moves;
                if active || self.is_reassembled_from_bits(result) {
                    self.refuse_float_bits(op);
                }
            }
            OpKind::Addr { .. }
                if poly::is_address_without_object(unit, body, body.operand(op, 0)) =>
            {
                let result = body.result(op);
                if self.may_point_into(result, |class| self.reaches_floats(class)) {
                    self.refuse_address_arithmetic(op);
                }
            }
            OpKind::Cast(CastOp::IntToPtr) => {
                let from = body.def_op(body.operand(op, 0));
                let computed = from.is_some_and(|d| matches!(body.kind(d), OpKind::Binary(_)));
                if computed && self.points_to_active(body.result(op)) {
                    self.refuse_address_arithmetic(op);
                }
            }
            OpKind::Cast(_)
                if (self.is_reassembled_from_bits(body.result(op))
                    || self.is_reinterpreted(op))
                    && !self.takes_integer_of_word(op) =>
            {
                self.refuse_float_bits(op);
            }
            OpKind::ExtractElement
                if self.activity.active(body.result(op)) && !self.is_extracted(op) =>
            {
                self.refuse_float_bits(op);
            }
            OpKind::InsertElement | OpKind::InsertValue(_) | OpKind::Shuffle(_) => {
                let result = body.result(op);
                let lanes = self.facts.words.lanes(self.func, result);
                let moves = whole_float_moves::moves_whole_ranges(unit, body, op, lanes);
                if self.activity.active(result) && !moves || self.is_reassembled_from_bits(result) {
                    self.refuse_float_bits(op);
                }
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.check_call(op),
            _ => {}
        }
        value_accesses(unit, body, op, |touch| {
            let (ValueAccess::Load { ptr, value } | ValueAccess::Store { ptr, value }) = touch;
            self.check_opaque_move(op, ptr, value);
            self.check_interposable_alias(op, ptr, value);
            if let ValueAccess::Store { ptr, value } = touch {
                self.check_pointer_without_shadow(op, ptr, value);
                self.check_integer_over_float(op, ptr, value);
                self.check_untyped_update(op, ptr, value);
            }
        });
    }
    /// Returns true if integer arithmetic computes a useful float from the bits of a varied float.
    fn is_reassembled_from_bits(&self, value: Value) -> bool {
        self.facts.words.carries_float(self.func, value)
            && self.classes.is_bitwise_tainted(self.func, value)
            && self.classes.value_useful(self.func, value)
    }
    /// Returns true if a cast reinterprets the bits of varied floats as useful floats of another format.
    fn is_reinterpreted(&self, op: Op) -> bool {
        let (from, to) = (self.body.operand(op, 0), self.body.result(op));
        let lanes = [from, to].map(|value| self.facts.words.lanes(self.func, value));
        matches!(self.body.kind(op), OpKind::Cast(CastOp::BitCast))
            && lanes.iter().all(|lanes| !lanes.is_empty())
            && lanes[0] != lanes[1]
            && self.classes.value_varied(self.func, from)
            && self.classes.value_useful(self.func, to)
    }
    /// Returns true if a cast takes the lower half of a word of run-time kind, which counts as an integer.
    fn takes_integer_of_word(&self, op: Op) -> bool {
        let OpKind::Cast(CastOp::Trunc) = self.body.kind(op) else {
            // Not an error: the op takes the whole word.
            return false;
        };
        let from = self.body.operand(op, 0);
        let types = &self.facts.unit.types;
        let bits = types.int_bits(self.body.ty(self.body.result(op)));
        let loads = std::iter::successors(self.body.def_op(from), |at| {
            let is_cast = matches!(self.body.kind(*at), OpKind::Cast(CastOp::BitCast));
            let from = is_cast.then(|| self.body.operand(*at, 0));
            from.and_then(|from| self.body.def_op(from))
        });
        bits.is_some_and(|bits| bits <= 32)
            && loads.last().is_some_and(|load| {
                let site = (self.func, load);
                self.classes.may_be_integer_word(self.facts, site)
            })
    }
    /// Returns true if the bit ranges of an extracted element are whole bit ranges of the vector.
    fn is_extracted(&self, op: Op) -> bool {
        let (unit, body) = (self.facts.unit, self.body);
        let (vector, result) = (body.operand(op, 0), body.result(op));
        let whole = self.facts.words.lanes(self.func, vector);
        let bits = bit_ranges::image_bits(unit, body.ty(result));
        let index = body.as_int(unit, body.operand(op, 1));
        let lanes = self.facts.words.lanes(self.func, result);
        lanes.iter().all(|lane| match index {
            Some(index) => whole.iter().any(|other| {
                other.kind == lane.kind && other.bit == element_bit(index, bits) + lane.bit
            }),
            None => {
                let same =
                    |other: &BitRange| other.kind == lane.kind && other.bit % bits == lane.bit;
                whole.iter().all(same)
            }
        })
    }
    /// Refuses cells that are moved as integers through memory with shadows and may be floats.
    fn check_opaque_move(&mut self, op: Op, ptr: Value, value: Value) {
        let memory = self.facts.memory;
        if self.points_to_active(ptr)
            && self.facts.words.is_opaque(memory, self.func, ptr, value)
            && self.body.as_int(self.facts.unit, value).is_none()
        {
            self.refuse_unknown_type(op);
        }
    }
    /// Refuses float accesses through an interposable alias: the target variable, and its activity, are
    /// unknown.
    fn check_interposable_alias(&mut self, op: Op, ptr: Value, value: Value) {
        let (unit, body) = (self.facts.unit, self.body);
        let kind = body.const_kind(unit, body.address_base(ptr));
        if matches!(kind, Some(ConstKind::Foreign(_)))
            && self.facts.words.carries_float(self.func, value)
        {
            self.refuse(
                op,
                Code::NoDerivative,
                "floats are accessed through a weak alias, and the linker may bind the alias to another variable",
                "access the variable by its own name, or make the alias a strong symbol",
            );
        }
    }
    fn refuse_unknown_type(&mut self, op: Op) {
        let message = "cannot determine whether the copied bytes are floats, pointers or integers";
        self.refuse(
            op,
            Code::UnknownMemoryType,
            message,
            "access the memory through its own type in the differentiated code, or copy member by member",
        );
    }
    fn is_float_update(&self, op: Op, value: usize) -> bool {
        self.facts
            .words
            .carries_float(self.func, self.body.operand(op, value))
            && self.points_to_active(self.body.operand(op, 0))
    }
    /// Refuses address arithmetic that would map the shadow's address to a different place.
    fn refuse_address_arithmetic(&mut self, op: Op) {
        let message = "integer arithmetic computes an address of active memory";
        let help = "align the memory at the allocation, outside the differentiated function";
        self.refuse(op, Code::NoDerivative, message, help);
    }
    fn refuse_atomic(&mut self, op: Op) {
        let message =
            "an atomic or volatile access works on active values or on a part of a pointer";
        self.refuse(
            op,
            Code::AtomicAccess,
            message,
            "use an ordinary access, use an atomic add and ignore the old value, or mark the memory as const",
        );
    }
    pub(super) fn refuse_float_bits(&mut self, op: Op) {
        let refused = float_bits::float_bits_diagnostic(self.facts.unit, self.func, self.body, op);
        self.list.push(refused);
    }
    /// Refuses floats that flow into a value otherwise used as an address: different paths leave a float or
    /// an address in one integer (Rust results of functions that may panic).
    fn check_number_as_pointer(&mut self, op: Op) {
        let (unit, body, words) = (self.facts.unit, self.body, self.facts.words);
        let mut found = false;
        flow_graph::value_flows(unit, body, op, |from, to| {
            found |= words.is_conflicting(self.func, to)
                && !words.carries_float(self.func, to)
                && words.carries_float(self.func, from)
                && self.activity.varied(from);
        });
        if found && !self.takes_integer_of_word(op) {
            self.refuse_float_bits(op);
        }
    }
    fn check_value(&mut self, op: Op, value: Value) {
        if !self.activity.active(value) {
            return;
        }
        let words = self.facts.words;
        if words.is_conflicting(self.func, value) && !self.takes_integer_of_word(op) {
            self.refuse_float_bits(op);
        }
        let known = self.facts.unit.callee(self.body, op);
        let known = known.and_then(|f| self.facts.unit.known(f));
        let masked = matches!(known, Some(ExternalFn::Masked(_)));
        if words.is_int_vector_with_floats(self.facts.unit, self.body, self.func, value)
            && (masked || !words.floats_are_even(self.func, value))
        {
            self.refuse_float_int_vector(op);
        }
        let lanes = self.facts.words.lanes(self.func, value).iter();
        let odd = lanes.into_iter().find_map(|lane| match lane.kind {
            LaneKind::Float(kind) if !is_supported(kind) => Some(kind),
            _ => None,
        });
        if let Some(kind) = odd {
            let message = format!("active values have the unsupported format {kind:?}");
            self.refuse(op, Code::FloatFormat, message, "use double or float");
        }
    }
    fn refuse_float_int_vector(&mut self, op: Op) {
        let message = "active floating-point numbers are moved as a vector of integers";
        let help = "compile with -fno-slp-vectorize -fno-vectorize, or give Gradus the source";
        self.refuse(op, Code::FloatBits, message, help);
    }
    /// Refuses active floats in integer vectors under a mask: masked lanes can only be moved back as
    /// floats.
    fn check_masked(&mut self, op: Op, args: &[Value]) {
        let (unit, body, words) = (self.facts.unit, self.body, self.facts.words);
        let hides = |v: &&Value| {
            words.is_int_vector_with_floats(unit, body, self.func, **v) && self.activity.active(**v)
        };
        if args.iter().any(|v| hides(&v)) {
            self.refuse_float_int_vector(op);
        }
    }
    /// Refuses a store of a pointer with a shadow to memory without a shadow.
    fn check_pointer_without_shadow(&mut self, op: Op, ptr: Value, value: Value) {
        let active = self.facts.words.carries_pointer(self.func, value)
            && self.points_to_active(value)
            && self.may_point_into(value, |class| self.classes.holds_active_floats(class));
        let is_write_only = |class| self.classes.is_write_only(class);
        let is_note = (self.facts.memory).points_only_into(self.func, ptr, is_write_only);
        if active && !is_note && !self.activity.shadow(ptr).is_some() {
            let message = "a pointer to active memory is stored in memory without a shadow";
            self.refuse(
                op,
                Code::BadRequest,
                message,
                "mark the argument or variable that holds the pointer as dup",
            );
        }
    }

    fn check_call(&mut self, op: Op) {
        let (unit, body) = (self.facts.unit, self.body);
        let args = unit.call_args(body, op);
        let result = body.call_result(op);
        if let (OpKind::Invoke(_), Some(result)) = (body.kind(op), result) {
            self.check_value(op, result);
        }
        let varied = args.iter().any(|v| self.activity.varied(*v));
        let active = args.iter().any(|v| self.activity.active(*v));
        let shadowed = args.iter().any(|v| self.points_to_active(*v));
        let integer = result.filter(|v| unit.types.int_bits(body.ty(*v)).is_some());
        if integer.is_some_and(|v| self.is_reassembled_from_bits(v)) {
            self.refuse_float_bits(op);
        }
        match self.facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(func)) => {
                let inner = unit.functions[func].body.as_deref();
                let count = inner.map_or(0, |b| b.params().len());
                let extra = args.iter().skip(count);
                let mut extra =
                    extra.filter(|v| self.activity.active(**v) || self.points_to_active(**v));
                let printed = varargs::varargs_are_only_formatted(unit, self.facts.closure, func);
                let is_refused = extra
                    .any(|v| !printed || varargs::may_be_structure(unit.types.get(body.ty(*v))))
                    || variadic_structures::is_varied(
                        self.facts,
                        self.classes,
                        (self.func, body, op),
                        count,
                    );
                if is_refused {
                    let callee = name_of(unit, func);
                    let message = format!("variadic arguments of `{callee}` are active");
                    let help = "pass the values as named arguments";
                    self.refuse(op, Code::Variadic, message, help);
                }
                if (active || shadowed) && !self.matches_signature(func, &args) {
                    self.refuse_signature_mismatch(op, func);
                }
            }
            Some(Callee::Indirect(_)) if active || shadowed => self.check_indirect_call(op, &args),
            Some(Callee::Foreign) if varied || shadowed => {
                let message = "inline assembly works on active values";
                self.refuse(op, Code::InlineAssembly, message, HELP_INACTIVE);
            }
            Some(Callee::Outside(func)) => {
                self.check_external_call(op, func, varied, active, shadowed)
            }
            _ => {}
        }
    }
    /// Returns true if the arguments have the parameter types of a function.
    fn matches_signature(&self, func: FuncId, args: &[Value]) -> bool {
        let unit = self.facts.unit;
        let types = unit.param_types(unit.functions[func].ty);
        let same = |(arg, ty): (&Value, &TypeId)| self.body.ty(*arg) == *ty;
        types.len() <= args.len() && std::iter::zip(args, types).all(same)
    }
    fn refuse_signature_mismatch(&mut self, op: Op, func: FuncId) {
        let name = name_of(self.facts.unit, func);
        let message =
            format!("`{name}` is called with argument types that differ from the definition");
        let help = format!("declare `{name}` with the types of the definition");
        self.refuse(op, Code::UnknownCallee, message, &help);
    }
    /// Checks an indirect call: every possible callee needs a derivative.
    fn check_indirect_call(&mut self, op: Op, args: &[Value]) {
        let unit = self.facts.unit;
        let callees = self.facts.memory.callees(self.func, op);
        if callees.is_empty() && !self.facts.memory.may_call_unknown(self.func, op) {
            return;
        }
        if callees.is_empty() {
            let message = "an indirect call works on active values and has no known target";
            let help = "compile the file that defines the target together with this one; if a function outside the differentiated code stores the target in a variable beforehand, use a constant table, or pass the target as an argument";
            return self.refuse(op, Code::UnknownIndirectTarget, message, help);
        }
        for &callee in callees {
            let known = unit.known_effects(callee).is_some_and(|e| e.inactive);
            // A plain call is preceded by a test of its pointer against these functions.
            let asked = matches!(self.body.kind(op), OpKind::Call(info)
                if info.bundles.is_empty() && info.signature == unit.functions[callee].ty);
            let by_name = asked
                && unit
                    .known(callee)
                    .is_some_and(ExternalFn::needs_direct_call);
            if unit.functions[callee].body.is_none() && !known && !by_name {
                self.refuse_unknown_derivative(op, callee);
            }
        }
        let in_bits = |v: &&Value| {
            let number = unit.types.int_bits(self.body.ty(**v)).is_some();
            number && (self.activity.active(**v) || self.activity.shadow(**v).is_some())
        };
        if args.iter().any(|v| in_bits(&v)) {
            let message = "an indirect call passes active floats or pointers as integers";
            let help = "pass the values with their own types, or call the function directly";
            self.refuse(op, Code::UnknownIndirectTarget, message, help);
        }
    }
    /// Refuses variadic arguments that are used for more than printing.
    fn check_variadic_use(&mut self, op: Op, marker: FuncId) {
        let (unit, closure) = (self.facts.unit, self.facts.closure);
        if unit.known(marker) == Some(ExternalFn::Marker(CompilerIntrinsic::VaStart))
            && !varargs::va_list_is_only_formatted(unit, closure, (self.func, op))
        {
            let message = "a function that works on active values reads its variadic arguments";
            let help = "pass the values as named arguments";
            self.refuse(op, Code::Variadic, message, help);
        }
    }
    fn check_external_call(
        &mut self,
        op: Op,
        func: FuncId,
        varied: bool,
        active: bool,
        shadowed: bool,
    ) {
        let unit = self.facts.unit;
        let Some(known) = unit.known(func) else {
            return self.check_unknown_call(op, func, varied, shadowed);
        };
        let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
        self.check_text_over_floats(op, func, known, effects);
        match known {
            ExternalFn::Memory(memory) => return self.check_memory_call(op, memory),
            ExternalFn::Masked(_) => {
                let args = unit.call_args(self.body, op);
                return self.check_masked(op, &args);
            }
            ExternalFn::Math(_) | ExternalFn::MathOut(_) | ExternalFn::Complex(_) => return,
            ExternalFn::Integer(IntFn::Ptrmask) if shadowed => {
                return self.refuse_address_arithmetic(op);
            }
            ExternalFn::Reduce(_) | ExternalFn::Integer(_) => return,
            ExternalFn::Marker(
                CompilerIntrinsic::VaStart | CompilerIntrinsic::VaEnd | CompilerIntrinsic::VaCopy,
            ) => {
                return self.check_variadic_use(op, func);
            }
            ExternalFn::OpenMp(_) | ExternalFn::Fork(_) if varied || shadowed => {
                let help = "remove the construct that prevents the conversion of this region (a note at the region names the construct), or compile without -fopenmp";
                return self.refuse(op, Code::OpenMp, "OpenMP on an active path", help);
            }
            ExternalFn::Mpi if varied || shadowed => {
                let help = "move the communication out of the differentiated function";
                return self.refuse(op, Code::Mpi, "MPI on an active path", help);
            }
            ExternalFn::Kernel(GpuFn::Reset) => {
                let help = "reset the device outside the differentiated function";
                let message = "the device reset frees memory that the derivative still reads";
                return self.refuse(op, Code::Gpu, message, help);
            }
            ExternalFn::Gpu if varied || shadowed => {
                let help = "launch kernels of the same file by name, and copy with `cudaMemcpy`";
                return self.refuse(op, Code::Gpu, "GPU calls on an active path", help);
            }
            ExternalFn::System(SystemFn::Print | SystemFn::PrintToMemory)
                if printf_formats::has_count_conversion(unit, self.body, op) =>
            {
                let message = "`%n` writes a character count to memory, and the analysis does not follow this write";
                let help = "use the character count that the call returns";
                return self.refuse(op, Code::UnknownCallee, message, help);
            }
            ExternalFn::System(SystemFn::Setjmp | SystemFn::Longjmp) => {
                let message = "the differentiated function calls `setjmp` or `longjmp`";
                let help = "leave loops with `break` or `return`";
                return self.refuse(op, Code::UnsupportedControl, message, help);
            }
            _ => {}
        }
        let result = self.body.call_result(op);
        let gives = result.is_some_and(|r| self.activity.active(r));
        let hits = gives || active && !effects.inactive || shadowed && writes(effects);
        if !effects.inactive && hits && !effects.is_pure() {
            self.refuse_unknown_derivative(op, func);
        }
    }
    /// Refuses a call of an unknown function that may access active values or modify their memory.
    fn check_unknown_call(&mut self, op: Op, func: FuncId, varied: bool, shadowed: bool) {
        let unit = self.facts.unit;
        let info = self.body.kind(op).call_info();
        let stated = [Some(unit.functions[func].attrs), info.and_then(|i| i.attrs)];
        let only_reads = stated
            .into_iter()
            .flatten()
            .any(|id| only_reads(unit.attrs(id)));
        let result = self.body.call_result(op);
        let gives = result.is_some_and(|r| {
            self.facts.words.carries_float(self.func, r) && self.body.has_uses(r)
                || self.facts.words.carries_pointer(self.func, r)
        });
        if (varied || shadowed) && (gives || !only_reads) {
            self.refuse_unknown_derivative(op, func);
        }
    }
    fn refuse_unknown_derivative(&mut self, op: Op, func: FuncId) {
        let name = name_of(self.facts.unit, func);
        if self.facts.unit.functions[func]
            .name
            .starts_with(STRICT_FP_PREFIX)
        {
            let message = "active values are computed in strict floating-point mode";
            let help =
                "compile this function without `#pragma STDC FENV_ACCESS` and `-ffp-model=strict`";
            return self.refuse(op, Code::UnsupportedControl, message, help);
        }
        if let Some(ExternalFn::System(SystemFn::Qsort | SystemFn::Bsearch)) =
            self.facts.unit.known(func)
        {
            let message =
                format!("`{name}` calls a comparison function that works on active values");
            let help = "do not modify outer variables in the comparison function, or search or sort with an explicit loop";
            return self.refuse(op, Code::UnknownCallee, message, help);
        }
        let message = format!("`{name}` works on active values and has no known derivative");
        if let Some(help) = flang_advice::flang_advice(&self.facts.unit.functions[func].name) {
            return self.refuse(op, Code::UnknownCallee, message, &help);
        }
        let or = match gradus_ir::externals::may_be_user_defined(
            &self.facts.unit.functions[func].name,
        ) {
            true => "include <math.h> to use the C library's function",
            false => "register a derivative for the function",
        };
        let help =
            format!("compile the file that defines `{name}` together with this one, or {or}");
        self.refuse(op, Code::UnknownCallee, message, &help);
    }
    fn check_memory_call(&mut self, op: Op, memory: MemoryFn) {
        let args = self.facts.unit.call_args(self.body, op);
        let copies = matches!(
            memory,
            MemoryFn::Memcpy
                | MemoryFn::MemcpyIntrinsic
                | MemoryFn::Memmove
                | MemoryFn::MemmoveIntrinsic
                | MemoryFn::Mempcpy
                | MemoryFn::Bcopy
        );
        if !copies || !args.iter().any(|v| self.points_to_active(*v)) {
            return;
        }
        let facts = self.facts;
        let kind = facts
            .words
            .copy_kind(facts.unit, facts.memory, self.body, self.func, op);
        if kind == CopyKind::Unknown {
            self.refuse_unknown_type(op);
        }
    }
}

/// Prefix of the intrinsics of the strict floating-point mode.
const STRICT_FP_PREFIX: &str = "llvm.experimental.constrained.";

const HELP_INACTIVE: &str =
    "move this code out of the differentiated function, or register a derivative for the function";

/// Returns true if an atomic access adds to or subtracts from a scalar float and its old value is unused.
fn is_float_accumulation(unit: &Unit, body: &Body, op: Op) -> bool {
    let OpKind::AtomicRmw(RmwOp::FAdd | RmwOp::FSub, access) = body.kind(op) else {
        return false;
    };
    let number = matches!(
        unit.types.get(body.ty(body.operand(op, 1))),
        Type::Float(FloatKind::F64 | FloatKind::F32)
    );
    number && !access.volatile && !body.has_uses(body.result(op))
}

fn writes(effects: Effects) -> bool {
    effects.writes.any || effects.writes.arguments != 0
}

fn is_supported(kind: FloatKind) -> bool {
    !matches!(kind, FloatKind::PpcF128)
}

/// Returns true if attributes state that a function writes no memory.
fn only_reads(attrs: &AttrSet) -> bool {
    let by_flag = ["readnone", "readonly"];
    let flag = by_flag.iter().any(|name| attrs.function(name).is_some());
    // LLVM's encoding of `memory`: two bits (reads, writes) per location.
    let memory = match attrs.function("memory") {
        Some(AttrValue::Int(bits)) => bits & 0xaaaa_aaaa == 0,
        _ => false,
    };
    flag || memory
}
