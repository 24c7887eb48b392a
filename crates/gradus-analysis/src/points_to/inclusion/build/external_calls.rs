//! Constraints of calls of external functions: allocation, copies, captured and returned pointers.
//!
//! Known functions follow their rows in gradus-ir. Memory behind the arguments of an unknown function escapes, unless
//! host attributes exclude capture and writes.

use crate::points_to::folds::Fold;
use crate::points_to::inclusion::build::BodyBuilder;
use crate::points_to::inclusion::constraints::{Constraint, NodeId, Step};
use crate::points_to::inclusion::objects::{EXTERNAL, ObjectKey};
use crate::types::lattice::CellType;
use gradus_ir::externals::{
    CompilerIntrinsic, Effects, ExceptionFn, ExternalFn, IntFn, MaskedFn, MemoryFn,
    MultiResultMathFn, SystemFn, VA_LIST_BYTES, VA_LIST_POINTERS,
};
use gradus_ir::{AttrValue, FuncId, Op, Value};

impl BodyBuilder<'_, '_> {
    /// Adds the constraints of a call of a function without a body.
    pub fn external_call(&mut self, op: Op, func: FuncId) {
        let unit = self.builder.unit;
        let Some(known) = unit.known(func) else {
            return self.unknown_call(op, func);
        };
        let args = unit.call_args(self.body, op);
        let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
        match known {
            ExternalFn::Memory(memory) => self.memory(op, memory, &args),
            ExternalFn::Masked(masked) => return self.masked(op, masked, &args),
            ExternalFn::Marker(CompilerIntrinsic::VaStart) => return self.va_start(&args),
            ExternalFn::Marker(CompilerIntrinsic::VaCopy) => return self.va_copy(op, &args),
            ExternalFn::MathOut(math) => self.math_out(op, math, &args),
            ExternalFn::System(SystemFn::Qsort | SystemFn::Bsearch) => return self.sort(op, &args),
            ExternalFn::OpenMp(_) | ExternalFn::Fork(_) | ExternalFn::Mpi | ExternalFn::Gpu => {
                return self.escape_operands(op, 1);
            }
            // Nobody observes what a function of the program keeps that never returns.
            ExternalFn::Exception(ExceptionFn::NoReturn) => return,
            ExternalFn::Math(_)
            | ExternalFn::Complex(_)
            | ExternalFn::Integer(_)
            | ExternalFn::Reduce(_)
            | ExternalFn::Text(_)
            | ExternalFn::Marker(_)
            | ExternalFn::System(_)
            | ExternalFn::Exception(_)
            | ExternalFn::Kernel(_)
            | ExternalFn::Inactive => {}
        }
        if effects.captures != 0 || effects.has_callbacks {
            for (index, &value) in args.iter().enumerate() {
                if index >= 16 || effects.captures >> index & 1 == 1 || effects.has_callbacks {
                    self.escape(value);
                }
            }
        }
        self.add_result(op, known, &args, effects);
    }
    fn memory(&mut self, op: Op, memory: MemoryFn, args: &[Value]) {
        let (to, from, size) = match (memory, args) {
            (MemoryFn::PosixMemalign, [ptr, ..]) => {
                let key = ObjectKey::Heap(self.func, op, self.context);
                let object = self.builder.objects.of(key);
                if let Some(ptr) = self.node(*ptr) {
                    let from = self.builder.program.node();
                    let program = &mut self.builder.program;
                    program.address(from, object, 0);
                    program.push(Constraint::Store {
                        ptr,
                        bytes: 0,
                        from,
                        tag: None,
                    });
                    program.evidence.cells.push((ptr, 0, CellType::POINTER));
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
        let size_bytes = self.body.as_int(self.builder.unit, size);
        let size_bytes = size_bytes.and_then(|n| u64::try_from(n).ok());
        if let (Some(to), Some(from)) = (self.node(to), self.node(from)) {
            self.copy_bytes(op, to, from, size_bytes);
        }
    }
    /// Lets a `va_list` lead to the variadic arguments. The arguments of all calls share one cell: the position of an
    /// argument depends on the types of the arguments before it.
    fn va_start(&mut self, args: &[Value]) {
        let Some(list) = args.first().and_then(|list| self.node(*list)) else {
            unreachable!("`va_start` has a pointer to a list");
        };
        let key = ObjectKey::Variadic(self.func, self.context);
        let object = self.builder.objects.of(key);
        let whole = Fold::of_whole_object(1);
        self.builder.objects.get_mut(object).folds.insert(whole);
        let arguments = self.builder.variadic[self.context.0 as usize];
        let program = &mut self.builder.program;
        let area = program.node();
        program.address(area, object, 0);
        program.push(Constraint::Store {
            ptr: area,
            bytes: 0,
            from: arguments,
            tag: None,
        });
        for bytes in VA_LIST_POINTERS {
            program.push(Constraint::Store {
                ptr: list,
                bytes,
                from: area,
                tag: None,
            });
        }
    }
    fn va_copy(&mut self, op: Op, args: &[Value]) {
        if let [to, from, ..] = *args
            && let (Some(to), Some(from)) = (self.node(to), self.node(from))
        {
            self.copy_bytes(op, to, from, Some(VA_LIST_BYTES));
        }
    }
    fn masked(&mut self, op: Op, masked: MaskedFn, args: &[Value]) {
        match (masked, args) {
            (MaskedFn::Load | MaskedFn::Gather | MaskedFn::ExpandLoad, [ptr, rest @ ..]) => {
                if let (Some(result), Some(otherwise)) = (self.body.call_result(op), rest.last()) {
                    self.load(op, *ptr, result);
                    self.copy(*otherwise, result);
                }
            }
            (MaskedFn::Store | MaskedFn::Scatter | MaskedFn::CompressStore, [value, ptr, ..]) => {
                self.store(op, *ptr, *value);
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
        let ty = self.body.ty(self.builder.unit.call_args(self.body, op)[0]);
        for ptr in behind.into_iter().flatten() {
            if let Some(place) = self.node(ptr) {
                let seen = self.access_evidence(ty);
                self.note_elements(place, 0, ty, seen);
            }
        }
    }
    /// Adds the constraints of `qsort` and `bsearch`: the comparator receives pointers to elements; `bsearch` returns
    /// one.
    fn sort(&mut self, op: Op, args: &[Value]) {
        let unit = self.builder.unit;
        let compare = args.iter().find_map(|&v| self.body.as_function(unit, v));
        let inside = compare.filter(|func| self.builder.closure.contains(*func));
        let (Some(compare), Some(context)) = (
            inside,
            inside.and_then(|func| self.builder.instances.shared_of(func)),
        ) else {
            return self.escape_operands(op, 1);
        };
        let Some(body) = self.builder.body(compare) else {
            unreachable!("the functions of the call graph have bodies");
        };
        // The size of an element is the argument before the comparator.
        let size = args
            .iter()
            .rev()
            .nth(1)
            .and_then(|&size| self.body.as_int(unit, size));
        let stride = size.and_then(|n| u64::try_from(n).ok());
        let stride = stride.filter(|n| *n > 0).unwrap_or(1);
        let elements = self.builder.program.node();
        let pointers = args.iter().filter(|&&v| unit.types.is_ptr(self.body.ty(v)));
        for &value in pointers {
            if self.body.as_function(unit, value).is_some() {
                continue;
            }
            for from in self.nodes(value).into_iter().flatten() {
                self.builder.program.push(Constraint::Moved {
                    to: elements,
                    from,
                    step: Step {
                        offset: 0,
                        index: 0,
                        stride,
                        forward: true,
                        passes_end: false,
                        array: None,
                        in_fortran: false,
                    },
                });
            }
        }
        self.exchange_elements(elements, stride);
        let mut inner = BodyBuilder {
            builder: self.builder,
            context,
            func: compare,
            body,
        };
        for &param in body.params() {
            for to in inner.nodes(param).into_iter().flatten() {
                inner.builder.program.copy(to, elements);
            }
        }
        if let Some(result) = self.body.call_result(op) {
            for to in self.nodes(result).into_iter().flatten() {
                self.builder.program.copy(to, elements);
            }
        }
    }
    /// A sort moves elements within their array. The elements share one fold, so that no cell changes.
    fn exchange_elements(&mut self, elements: NodeId, stride: u64) {
        self.builder.program.push(Constraint::CopyBytes {
            to: elements,
            from: elements,
            size_bytes: Some(stride),
        });
    }
    /// Adds the constraints of a known function's result.
    fn add_result(&mut self, op: Op, known: ExternalFn, args: &[Value], effects: Effects) {
        let Some(result) = self.body.call_result(op) else {
            // Not an error: the call has no result.
            return;
        };
        if !self.builder.holds_address(self.body.ty(result)) {
            return;
        }
        if let ExternalFn::Integer(integer) = known {
            // Other integer functions yield lengths and bits, no addresses.
            if let IntFn::Umax | IntFn::Umin | IntFn::Smax | IntFn::Smin = integer {
                args.iter().for_each(|&arg| self.copy_any(arg, result));
            }
            return;
        }
        let replaced = match known {
            ExternalFn::Memory(memory) => memory.allocation().and_then(|a| a.replaces),
            _ => None,
        };
        let given = effects.returns_argument.or(replaced);
        let given = given.and_then(|i| args.get(usize::from(i))).copied();
        if effects.allocates {
            let key = ObjectKey::Heap(self.func, op, self.context);
            let object = self.builder.objects.of(key);
            self.point_to(result, object);
            // The new block of `realloc` receives the contents of the old block.
            if let (Some(old), Some(_)) = (given, replaced)
                && let (Some(from), Some(to)) = (self.node(old), self.node(result))
            {
                self.builder.program.push(Constraint::CopyBytes {
                    to,
                    from,
                    size_bytes: None,
                });
            }
        }
        match given {
            Some(value) => {
                let inside = matches!(
                    known,
                    ExternalFn::Text(_) | ExternalFn::Memory(MemoryFn::Mempcpy)
                );
                match inside {
                    true => self.point_inside(value, result),
                    false => self.copy_any(value, result),
                }
            }
            None if effects.allocates => {}
            None if effects.captures != 0 => self.point_to(result, EXTERNAL),
            None => {
                let key = ObjectKey::Returned(self.func, op, self.context);
                let object = self.builder.objects.of(key);
                self.point_to(result, object);
            }
        }
    }
    /// Lets `result` point anywhere into the objects behind `value`.
    fn point_inside(&mut self, value: Value, result: Value) {
        let (from, to) = (self.nodes(value), self.nodes(result));
        for &from in from.iter().flatten() {
            for &to in to.iter().flatten() {
                self.builder.program.push(Constraint::Moved {
                    to,
                    from,
                    step: Step {
                        offset: 0,
                        index: 0,
                        stride: 1,
                        forward: true,
                        passes_end: false,
                        array: None,
                        in_fortran: false,
                    },
                });
            }
        }
    }
    /// Adds the constraints of a call of an unknown function, refined by host attributes.
    fn unknown_call(&mut self, op: Op, func: FuncId) {
        let args = self.builder.unit.call_args(self.body, op);
        for (index, value) in args.into_iter().enumerate() {
            if !self.is_read_only(op, func, index) {
                self.escape(value);
            }
        }
        if let Some(result) = self.body.call_result(op)
            && self.builder.holds_address(self.body.ty(result))
        {
            self.point_to(result, EXTERNAL);
        }
    }
    /// Returns true if the host states that a pointer argument is neither captured nor written through.
    fn is_read_only(&self, op: Op, func: FuncId, index: usize) -> bool {
        let unit = self.builder.unit;
        let own = Some(unit.functions[func].attrs);
        let call = self.body.kind(op).call_info().and_then(|i| i.attrs);
        let stated = |name: &str| {
            let lists = [own, call].into_iter().flatten();
            lists
                .into_iter()
                .find_map(|id| unit.attrs(id).param(index, name).cloned())
        };
        let kept = match stated("captures") {
            Some(AttrValue::Int(0)) => false,
            _ => stated("nocapture").is_none(),
        };
        !kept && (stated("readonly").is_some() || stated("readnone").is_some())
    }
}
