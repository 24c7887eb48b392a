//! External calls: alias-set constraints for allocation, copies, captured and returned pointers.
//!
//! Known functions are modelled by their table rows in gradus-ir. All pointers passed to an unknown
//! function are merged with the memory of unknown code, unless host attributes exclude capture and writes.

use crate::points_to::alias_set_solver::{Copy, Solver};
use crate::points_to::alias_sets::MemoryOrigin;
use crate::points_to::constraints::ConstraintBuilder;
use crate::points_to::union_find::NodeOffset;
use gradus_ir::externals::{
    CompilerIntrinsic, Effects, ExternalFn, MaskedFn, MemoryFn, MultiResultMathFn, SystemFn,
    VA_LIST_POINTERS,
};
use gradus_ir::{AttrValue, ConstKind, FuncId, Op, Value};

impl Solver<'_> {
    /// Handles an indirect call of a function without a body like a direct call.
    pub(crate) fn external_indirect_call(&mut self, (caller, op): (FuncId, Op), func: FuncId) {
        let Some(body) = self.unit.functions[caller].body.as_deref() else {
            unreachable!("an indirect call is in a body");
        };
        let mut reader = ConstraintBuilder {
            solver: self,
            func: caller,
            body,
        };
        reader.external_call(op, func);
        // Copies added by the function require another fixpoint round.
        self.classes.changes += 1;
    }
}

impl ConstraintBuilder<'_, '_> {
    /// Adds the constraints of a call of a function without a body.
    pub(crate) fn external_call(&mut self, op: Op, func: FuncId) {
        let unit = self.solver.unit;
        let Some(known) = unit.known(func) else {
            return self.unknown_call(op, func);
        };
        let args = unit.call_args(self.body, op);
        // A global has an alias set even if only calls of known functions mention it.
        for &arg in &args {
            if self.is_variable(arg) {
                self.target(arg);
            }
        }
        let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
        match known {
            ExternalFn::Memory(memory) => self.memory(op, memory, &args),
            ExternalFn::Masked(masked) => return self.masked(op, masked, &args),
            ExternalFn::Marker(CompilerIntrinsic::VaStart) => return self.va_start(&args),
            ExternalFn::MathOut(math) => self.math_out(op, math, &args),
            ExternalFn::System(SystemFn::Qsort | SystemFn::Bsearch) => return self.sort(op, &args),
            ExternalFn::OpenMp(_) | ExternalFn::Fork(_) | ExternalFn::Mpi | ExternalFn::Gpu => {
                return self.escape_operands(op, 1);
            }
            _ => {}
        }
        if effects.captures != 0 || effects.has_callbacks {
            self.escape_captured(&args, effects);
        }
        self.add_result(op, known, &args, effects);
    }

    /// Lets a `va_list` lead to unknown memory, to which variadic arguments escape.
    fn va_start(&mut self, args: &[Value]) {
        let list = args.first().and_then(|list| self.target(*list));
        let unseen = self.solver.unseen();
        let Some(list) = list else {
            unreachable!("`va_start` has a pointer to a list");
        };
        for bytes in VA_LIST_POINTERS {
            let at = NodeOffset {
                offset: list.offset.wrapping_add(bytes),
                ..list
            };
            let points = self.solver.classes.pointee(at);
            self.solver.classes.unify(points, unseen);
        }
    }

    fn is_variable(&self, value: Value) -> bool {
        let constant = self.body.as_const(value);
        constant.is_some_and(|id| {
            let kind = &self.solver.unit.constant(id).kind;
            matches!(kind, ConstKind::Global { .. })
        })
    }

    fn memory(&mut self, op: Op, memory: MemoryFn, args: &[Value]) {
        let (to, from, size) = match (memory, args) {
            (MemoryFn::PosixMemalign, [ptr, ..]) => {
                if let Some(place) = self.target(*ptr) {
                    let object = self.solver.object(MemoryOrigin::Heap(self.func, op));
                    let points = self.solver.classes.pointee(place);
                    self.solver.classes.unify(points, object);
                    self.solver
                        .note(place, crate::types::lattice::CellType::POINTER);
                }
                return;
            }
            (MemoryFn::Bcopy, [from, to, size, ..]) => (*to, *from, *size),
            (
                MemoryFn::Memcpy
                | MemoryFn::MemcpyIntrinsic
                | MemoryFn::Memmove
                | MemoryFn::MemmoveIntrinsic
                | MemoryFn::Mempcpy,
                [to, from, size, ..],
            ) => (*to, *from, *size),
            _ => return,
        };
        let size_bytes = self.body.as_int(self.solver.unit, size);
        if let (Some(to), Some(from)) = (self.target(to), self.target(from)) {
            self.solver.copies.push(Copy {
                at: (self.func, op),
                to,
                from,
                size_bytes: size_bytes.and_then(|n| u64::try_from(n).ok()),
            });
        }
    }

    fn masked(&mut self, op: Op, masked: MaskedFn, args: &[Value]) {
        match (masked, args) {
            (MaskedFn::Load | MaskedFn::Gather | MaskedFn::ExpandLoad, [ptr, rest @ ..]) => {
                if let (Some(result), Some(otherwise)) = (self.body.call_result(op), rest.last()) {
                    self.access(op, *ptr, result);
                    self.copy(*otherwise, result);
                }
            }
            (MaskedFn::Store | MaskedFn::Scatter | MaskedFn::CompressStore, [value, ptr, ..]) => {
                self.access(op, *ptr, *value);
            }
            _ => {}
        }
    }

    /// Records the float types that a math function writes through its pointer arguments.
    fn math_out(&mut self, op: Op, math: MultiResultMathFn, args: &[Value]) {
        let behind = match (math, args) {
            (MultiResultMathFn::Sincos, [_, a, b]) => [Some(*a), Some(*b)],
            (MultiResultMathFn::Modf, [_, a]) => [Some(*a), None],
            _ => return,
        };
        let ty = self.body.ty(self.solver.unit.call_args(self.body, op)[0]);
        for ptr in behind.into_iter().flatten() {
            if let Some(place) = self.target(ptr) {
                let seen = self.solver.access_evidence(ty);
                self.solver.note_elements(place, ty, seen);
            }
        }
    }

    /// Models `qsort` and `bsearch`: the comparator receives pointers to elements; `bsearch` returns one.
    fn sort(&mut self, op: Op, args: &[Value]) {
        let unit = self.solver.unit;
        // `bsearch` takes the key first. The key may be null if the comparator ignores it.
        let Some(base) = args.iter().take(2).find_map(|&v| self.target(v)) else {
            // Not an error: the array is null.
            return;
        };
        let compare = args.iter().find_map(|&v| self.body.as_function(unit, v));
        let seen = |func: &FuncId| self.solver.closure.contains(*func);
        let Some(compare) = compare.filter(seen) else {
            return self.escape_operands(op, 1);
        };
        let size = args
            .iter()
            .filter_map(|&v| self.body.as_int(unit, v))
            .next_back();
        self.solver.classes.add_stride(base, size.unwrap_or(1));
        let mut targets = vec![vec![Some(base)], vec![Some(base)]];
        for &value in args.iter().skip(1) {
            if let Some(target) = self.target(value) {
                targets.push(vec![Some(target)]);
            }
        }
        if let Some(result) = self.body.call_result(op) {
            for target in targets
                .iter()
                .flatten()
                .flatten()
                .copied()
                .collect::<Vec<_>>()
            {
                self.add_pointee(result, target);
                self.solver.classes.unify(base, target);
            }
        }
        self.solver.called_from_unknown(compare, base);
    }

    /// Lets pointers escape that a known function captures or passes to a callback.
    fn escape_captured(&mut self, args: &[Value], effects: Effects) {
        for (index, &value) in args.iter().enumerate() {
            if index < 16 && effects.captures >> index & 1 == 0 && !effects.has_callbacks {
                continue;
            }
            self.escape_pointees(value);
        }
    }
    /// Merges the pointees of a value with the memory of unknown code.
    fn escape_pointees(&mut self, value: Value) {
        for target in self.targets(value).into_iter().flatten() {
            let unseen = self.solver.unseen();
            self.solver.classes.unify(target, unseen);
        }
    }

    /// Adds the constraints of a known function's result.
    fn add_result(&mut self, op: Op, known: ExternalFn, args: &[Value], effects: Effects) {
        let Some(result) = self.body.call_result(op) else {
            // Not an error: the call has no result.
            return;
        };
        if !self.solver.holds_address(self.body.ty(result)) {
            return;
        }
        let replaced = match known {
            ExternalFn::Memory(memory) => memory.allocation().and_then(|a| a.replaces),
            _ => None,
        };
        let given = effects.returns_argument.or(replaced);
        if effects.allocates {
            let object = self.solver.object(MemoryOrigin::Heap(self.func, op));
            self.add_pointee(result, object);
        }
        match given.and_then(|i| args.get(usize::from(i))) {
            Some(&value) => {
                let inside = matches!(
                    known,
                    ExternalFn::Text(_) | ExternalFn::Memory(MemoryFn::Mempcpy)
                );
                if let (true, Some(target)) = (inside, self.target(value)) {
                    self.solver.classes.add_stride(target, 1);
                }
                self.copy(value, result);
            }
            None if effects.allocates => {}
            None if effects.captures != 0 => self.escape_pointees(result),
            None => {
                let object = self.solver.object(MemoryOrigin::External(self.func, op));
                self.add_pointee(result, object);
            }
        }
    }

    /// Adds the constraints of a call of an unknown function, refined by host attributes.
    fn unknown_call(&mut self, op: Op, func: FuncId) {
        let args = self.solver.unit.call_args(self.body, op);
        for (index, value) in args.into_iter().enumerate() {
            if !self.is_read_only_capture(op, func, index) {
                self.escape_pointees(value);
            }
        }
        if let Some(result) = self.body.call_result(op)
            && self.solver.holds_address(self.body.ty(result))
        {
            let unseen = self.solver.unseen();
            self.add_pointee(result, unseen);
        }
    }
    /// Returns true if the host states that a pointer argument is neither captured nor written through.
    fn is_read_only_capture(&self, op: Op, func: FuncId, index: usize) -> bool {
        let unit = self.solver.unit;
        let own = Some(unit.functions[func].attrs);
        let call = self.body.kind(op).call_info().and_then(|i| i.attrs);
        let stated = |name: &str| {
            [own, call]
                .into_iter()
                .flatten()
                .find_map(|id| unit.attrs(id).param(index, name).cloned())
        };
        let kept = match stated("captures") {
            Some(AttrValue::Int(0)) => false,
            _ => stated("nocapture").is_none(),
        };
        !kept && (stated("readonly").is_some() || stated("readnone").is_some())
    }
}

#[cfg(test)]
mod tests {
    use crate::{AliasSets, CallGraph};
    use gradus_ir::{FuncId, Unit, Value};

    /// Returns the alias sets of a program with root `@f`, and the function, value and parameters of `@f`.
    fn study(text: &str) -> (AliasSets, FuncId, Value, Vec<Value>) {
        let unit: Unit = gradus_ir::parse(text, "f.gir").expect("the text is well formed");
        let func = unit.function("f").expect("the function is defined");
        let body = unit.functions[func].body.as_ref().expect("it has a body");
        let end = body.last(body.root()).expect("it ends");
        let memory = AliasSets::of(&unit, &CallGraph::of(&unit, &[func]));
        (memory, func, body.operand(end, 0), body.params().to_vec())
    }

    #[test]
    fn indirect_unknown_returns_external() {
        let (memory, func, given, _) = study(
            "declare @first(i64) -> ptr\ndeclare @second(i64) -> ptr\n\
             func @f(%which: i1, %n: i64) -> ptr {\n\
             %to = select %which, @first, @second\n\
             %given = call %to(%n) : fn(i64) -> ptr\nreturn %given\n}\n",
        );
        assert!(memory.points_only_into(func, given, |set| memory.escaped(set)));
    }

    #[test]
    fn indirect_memcpy_is_a_copy() {
        let (memory, ..) = study(
            "declare @memcpy(ptr, ptr, i64) -> ptr\ndeclare @memmove(ptr, ptr, i64) -> ptr\n\
             func @f(%which: i1, %a: ptr, %b: ptr) -> ptr {\n\
             %to = select %which, @memcpy, @memmove\n\
             %r = call %to(%a, %b, 64) : fn(ptr, ptr, i64) -> ptr\nreturn %r\n}\n",
        );
        assert_eq!(memory.copies().len(), 1);
    }

    #[test]
    fn bsearch_null_key_returns_element() {
        let (memory, func, given, params) = study(
            "declare @bsearch(ptr, ptr, i64, i64, ptr) -> ptr\n\
             func @compare(%a: ptr, %b: ptr) -> i32 {\n%n = load %b -> i32\nreturn %n\n}\n\
             func @f(%list: ptr) -> ptr {\n\
             %r = call @bsearch(null, %list, 9, 8, @compare)\nreturn %r\n}\n",
        );
        let list = memory.alias_sets_of(func, params[0]);
        assert_eq!((list.len(), memory.alias_sets_of(func, given)), (1, list));
    }

    #[test]
    fn external_comparator_captures() {
        let (memory, func, _, params) = study(
            "declare @qsort(ptr, i64, i64, ptr)\ndeclare @compare(ptr, ptr) -> i32\n\
             func @f(%list: ptr) -> ptr {\n\
             call @qsort(%list, 9, 8, @compare)\nreturn %list\n}\n",
        );
        assert!(memory.points_only_into(func, params[0], |set| memory.escaped(set)));
    }
}
