//! Expansion of `qsort` and `bsearch` into GIR, which exposes moved elements and result pointers to the
//! analyses.
//!
//! Sorting moves floats, and their derivatives move with them. The call becomes a call of a function that
//! merges runs of doubling length from one block to another and copies them back (Knuth, TAOCP 3, 5.2.4). The
//! merge sort is stable, like the sort of the C library. The search halves the range like the C library. One
//! function is emitted per element size. Only constant sizes are expanded, because the cells of an element
//! are moved by their type.
//!
//! The C library determines which elements are compared, and how often. If a comparison has side effects, the
//! call remains.

use gradus_ir::externals::{Effects, SystemFn};
use gradus_ir::{
    BinaryOp, Body, Builder, CallInfo, EffectClass, FuncId, IntPredicate, Linkage, Op, OpKind,
    Region, Type, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Limit on the element size; the C library handles larger elements.
const ELEMENT_BYTES_MAX: i64 = 1 << 12;

/// Emits the call that replaces a call of `qsort` or `bsearch`, and returns its result (`None` for `qsort`).
/// Returns `None` if the original call remains.
pub(crate) fn call(b: &mut Builder<'_>, f: SystemFn, args: &[Value]) -> Option<Option<Value>> {
    let (func, rest) = match (f, args) {
        (SystemFn::Qsort, [_, _, size, compare]) if comparison_has_no_effects(b, *compare) => {
            (sort(b, *size)?, vec![0, 1, 3])
        }
        (SystemFn::Bsearch, [_, _, _, size, _]) => (search(b, *size)?, vec![0, 1, 2, 4]),
        _ => return None,
    };
    let args: Vec<Value> = rest.into_iter().map(|i| args[i]).collect();
    let call = b.call(func, &args);
    Some(b.body.results(call).first().copied())
}

/// Builder of a sort or search function.
struct Maker<'a> {
    b: Builder<'a>,
    size_bytes: i64,
    compare: Value,
    compare_ty: TypeId,
}

fn element_bytes(b: &Builder<'_>, size: Value) -> Option<i64> {
    let bytes = b.body.as_int(b.unit, size)?;
    (1..=ELEMENT_BYTES_MAX).contains(&bytes).then_some(bytes)
}

/// Returns true if a comparison function has no effect except its result. If the function is not a constant,
/// all functions of the signature of a comparison are checked.
fn comparison_has_no_effects(b: &Builder<'_>, compare: Value) -> bool {
    let unit = &*b.unit;
    let mut work: Vec<FuncId> = match b.body.as_function(unit, compare) {
        Some(func) => vec![func],
        _ => (unit.functions.iter())
            .filter(|(_, f)| f.body.is_some() && is_comparison(unit, f.ty))
            .map(|(func, _)| func)
            .collect(),
    };
    let mut seen: HashSet<FuncId> = work.iter().copied().collect();
    while let Some(func) = work.pop() {
        let Some(body) = unit.functions[func].body.as_deref() else {
            return false;
        };
        for op in body.walk(body.root()) {
            let leaves_nothing = match body.kind(op).effects() {
                EffectClass::Calls => match unit.callee(body, op) {
                    Some(callee) if unit.functions[callee].body.is_some() => {
                        if seen.insert(callee) {
                            work.push(callee);
                        }
                        true
                    }
                    Some(callee) => writes_only_local_memory(unit, body, op, callee),
                    None => false,
                },
                EffectClass::Writes => is_local_memory(body, body.operand(op, 1)),
                EffectClass::ReadsWrites | EffectClass::Unknown => false,
                _ => true,
            };
            if !leaves_nothing {
                return false;
            }
        }
    }
    true
}

/// Returns true for the function type of a comparison: two pointers.
fn is_comparison(unit: &Unit, ty: TypeId) -> bool {
    let is_ptr = |ty: &TypeId| matches!(unit.types.get(*ty), Type::Ptr(_));
    let params = unit.param_types(ty);
    params.len() == 2 && params.iter().all(is_ptr)
}

/// Returns true if an external function, called by a comparison, writes at most to local memory of the
/// comparison.
fn writes_only_local_memory(unit: &Unit, body: &Body, op: Op, callee: FuncId) -> bool {
    let effects = unit.known_effects(callee).unwrap_or(Effects::UNKNOWN);
    let args = unit.call_args(body, op);
    let is_kept = |(i, arg): (usize, &Value)| {
        !effects.writes.argument(i)
            || body.as_int(unit, *arg).is_some()
            || is_local_memory(body, *arg)
    };
    !effects.writes.any && !effects.has_callbacks && args.iter().enumerate().all(is_kept)
}

/// Returns true if an address lies in an alloca of the body.
fn is_local_memory(body: &Body, ptr: Value) -> bool {
    let base = body.def_op(body.address_base(ptr));
    base.is_some_and(|op| matches!(body.kind(op), OpKind::Alloca(_)))
}

fn sort(b: &mut Builder<'_>, size: Value) -> Option<FuncId> {
    let bytes = element_bytes(b, size)?;
    let (ptr, long, void) = (
        b.unit.types.ptr(),
        b.unit.types.int(64),
        b.unit.types.void(),
    );
    let ty = b.unit.types.func(void, vec![ptr, long, ptr]);
    let name = format!("__gradus1_sort_{bytes}");
    Some(define(b.unit, &name, ty, |maker| maker.sort(), bytes, 2))
}

fn search(b: &mut Builder<'_>, size: Value) -> Option<FuncId> {
    let bytes = element_bytes(b, size)?;
    let (ptr, long) = (b.unit.types.ptr(), b.unit.types.int(64));
    let ty = b.unit.types.func(ptr, vec![ptr, ptr, long, ptr]);
    let name = format!("__gradus1_search_{bytes}");
    Some(define(b.unit, &name, ty, |maker| maker.search(), bytes, 3))
}

fn define(
    unit: &mut Unit,
    name: &str,
    ty: TypeId,
    make: impl FnOnce(&mut Maker<'_>),
    size_bytes: i64,
    compare: usize,
) -> FuncId {
    if let Some(func) = unit.function(name) {
        return func;
    }
    let params = unit.param_types(ty).to_vec();
    let (ptr, int) = (unit.types.ptr(), unit.types.int(32));
    let compare_ty = unit.types.func(int, vec![ptr, ptr]);
    let mut body = Body::new(&params);
    let compare = body.params()[compare];
    make(&mut Maker {
        b: Builder::new(unit, &mut body),
        size_bytes,
        compare,
        compare_ty,
    });
    unit.define(name.to_string(), ty, Linkage::Internal, body)
}

impl Maker<'_> {
    fn element(&mut self, base: Value, index: Value) -> Value {
        let bytes = self.b.i64(self.size_bytes);
        let offset = self.b.mul(index, bytes);
        self.b.byte_addr(base, offset)
    }

    fn compared(&mut self, left: Value, right: Value) -> Value {
        let info = CallInfo::plain(self.compare_ty);
        let call = self.b.call_with(info, self.compare, &[left, right]);
        self.b.body.result(call)
    }

    fn copy(&mut self, to: Value, from: Value) {
        let copy = gradus_edit::declare_memcpy(self.b.unit);
        let (bytes, plain) = (self.b.i64(self.size_bytes), self.b.bool(false));
        self.b.call(copy, &[to, from, bytes, plain]);
    }

    fn lesser(&mut self, a: Value, b: Value) -> Value {
        let less = self.b.icmp(IntPredicate::Ult, a, b);
        self.b.select(less, a, b)
    }

    /// Emits the sort: `(base, count, compare)`.
    fn sort(&mut self) {
        let (base, count) = (self.b.body.params()[0], self.b.body.params()[1]);
        let two = self.b.i64(2);
        let several = self.b.icmp(IntPredicate::Uge, count, two);
        let (_, yes, no) = self.b.if_(several, &[]);
        let place = self.b.set_insertion_end(yes);
        let size = self.b.i64(self.size_bytes);
        let bytes = self.b.mul(count, size);
        let other = crate::emit::libc::private_block(&mut self.b, bytes);
        let one = self.b.i64(1);
        let (_, pass) = self.b.loop_(&[one], &[]);
        let behind = self.b.set_insertion_end(pass);
        let width = self.b.body.region_params(pass)[0];
        self.merge_all(base, other, count, width);
        self.copy_back(base, other, count);
        let next = self.b.add(width, width);
        let again = self.b.icmp(IntPredicate::Ult, next, count);
        self.b.repeat(again, &[next], &[]);
        self.b.restore_insertion_point(behind);
        let free = gradus_edit::declare_free(self.b.unit);
        self.b.call(free, &[other]);
        self.b.yield_(&[]);
        self.b.set_insertion_end(no);
        self.b.yield_(&[]);
        self.b.restore_insertion_point(place);
        self.b.return_(None);
    }

    /// Merges each pair of runs of `width` elements.
    fn merge_all(&mut self, base: Value, other: Value, count: Value, width: Value) {
        let zero = self.b.i64(0);
        let (_, runs) = self.b.loop_(&[zero], &[]);
        let behind = self.b.set_insertion_end(runs);
        let start = self.b.body.region_params(runs)[0];
        let sum = self.b.add(start, width);
        let middle = self.lesser(sum, count);
        let sum = self.b.add(middle, width);
        let end = self.lesser(sum, count);
        let (_, merge) = self.b.loop_(&[start, start, middle], &[]);
        let after = self.b.set_insertion_end(merge);
        self.merge(merge, base, other, [middle, end]);
        self.b.restore_insertion_point(after);
        let again = self.b.icmp(IntPredicate::Ult, end, count);
        self.b.repeat(again, &[end], &[]);
        self.b.restore_insertion_point(behind);
    }

    /// Emits one merge step: the element comes from the left run if it is not greater, or if the right run is
    /// empty.
    fn merge(&mut self, region: Region, base: Value, other: Value, [middle, end]: [Value; 2]) {
        let [at, left, right] = [0, 1, 2].map(|i| self.b.body.region_params(region)[i]);
        let has_left = self.b.icmp(IntPredicate::Ult, left, middle);
        let has_right = self.b.icmp(IntPredicate::Ult, right, end);
        let both = self.b.binary(BinaryOp::And, has_left, has_right);
        let bit = self.b.unit.types.int(1);
        let (op, yes, no) = self.b.if_(both, &[bit]);
        let place = self.b.set_insertion_end(yes);
        let (a, b) = (self.element(base, left), self.element(base, right));
        let order = self.compared(a, b);
        let ty = self.b.body.ty(order);
        let zero = self.b.zero(ty);
        let first = self.b.icmp(IntPredicate::Sle, order, zero);
        self.b.yield_(&[first]);
        self.b.set_insertion_end(no);
        self.b.yield_(&[has_left]);
        self.b.restore_insertion_point(place);
        let first = self.b.body.result(op);
        let from = self.b.select(first, left, right);
        let (to, from) = (self.element(other, at), self.element(base, from));
        self.copy(to, from);
        let one = self.b.i64(1);
        let (next, next_left, next_right) = (
            self.b.add(at, one),
            self.b.add(left, one),
            self.b.add(right, one),
        );
        let left = self.b.select(first, next_left, left);
        let right = self.b.select(first, right, next_right);
        let again = self.b.icmp(IntPredicate::Ult, next, end);
        self.b.repeat(again, &[next, left, right], &[]);
    }

    fn copy_back(&mut self, base: Value, other: Value, count: Value) {
        let (_, each) = self.b.for_(count, &[]);
        let behind = self.b.set_insertion_end(each);
        let at = self.b.body.region_params(each)[0];
        let (to, from) = (self.element(base, at), self.element(other, at));
        self.copy(to, from);
        self.b.yield_(&[]);
        self.b.restore_insertion_point(behind);
    }

    /// Emits the search: `(key, base, count, compare) → element or null`.
    fn search(&mut self) {
        let [key, base, count] = [0, 1, 2].map(|i| self.b.body.params()[i]);
        let (ptr, zero) = (self.b.unit.types.ptr(), self.b.i64(0));
        let (op, halve) = self.b.loop_(&[zero, count], &[ptr]);
        let behind = self.b.set_insertion_end(halve);
        let [low, high] = [0, 1].map(|i| self.b.body.region_params(halve)[i]);
        let some = self.b.icmp(IntPredicate::Ult, low, high);
        let long = self.b.unit.types.int(64);
        let bit = self.b.unit.types.int(1);
        let (step, yes, no) = self.b.if_(some, &[ptr, long, long, bit]);
        let place = self.b.set_insertion_end(yes);
        let (sum, one) = (self.b.add(low, high), self.b.i64(1));
        let middle = self.b.binary(BinaryOp::LShr, sum, one);
        let at = self.element(base, middle);
        let order = self.compared(key, at);
        let ty = self.b.body.ty(order);
        let nothing = self.b.zero(ty);
        let less = self.b.icmp(IntPredicate::Slt, order, nothing);
        let other = self.b.icmp(IntPredicate::Ne, order, nothing);
        let above = self.b.add(middle, one);
        let (low_next, high_next) = (
            self.b.select(less, low, above),
            self.b.select(less, middle, high),
        );
        let null = self.b.zero(ptr);
        let found = self.b.select(other, null, at);
        self.b.yield_(&[found, low_next, high_next, other]);
        self.b.set_insertion_end(no);
        let never = self.b.bool(false);
        self.b.yield_(&[null, low, high, never]);
        self.b.restore_insertion_point(place);
        let [found, low, high, again] = [0, 1, 2, 3].map(|i| self.b.body.results(step)[i]);
        self.b.repeat(again, &[low, high], &[found]);
        self.b.restore_insertion_point(behind);
        let result = self.b.body.result(op);
        self.b.return_(Some(result));
    }
}
