//! Legalisation before differentiation: rewrites calls without a formula into ops with a formula.
//!
//! - Math functions with an out-parameter: `sincos(a, &s, &c)`, `modf(a, &w)` and `frexp(a, &e)` become
//!   LLVM's pair intrinsics and stores. `lgamma_r` and `remquo` get a separate call for the float result.
//! - Complex functions in single precision are computed in double precision.
//! - `qsort` and `bsearch` become loops.
//! - Vector reductions by product, minimum or maximum, gathers and scatters become scalar code per lane.
//! - A sine and a cosine of one angle become a pair.
//! - Compare-exchange loops that add become atomic sums.
//! - `realloc` becomes `malloc`, a copy and `free`; Rust's reallocation likewise.
//! - Indirect calls with a short list of possible callees become direct calls.
//!
//! Runs on the primal before any analysis and preserves the meaning of the primal.

use crate::calculus::build::math_call;
use crate::calculus::legalize::{cas_loops, devirtualize, masked_memory, qsort, sincos};
use gradus_ir::externals::{
    ComplexFn, ExternalFn, MathFn, MemoryFn, MultiResultMathFn, ReduceFn, SystemFn,
};
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, FloatKind, FuncId, IntPredicate, Op, OpKind, Type,
    TypeId, Unit, Value,
};

/// Rewrites all such calls of a body. Returns the number of rewritten calls.
pub fn legalize_calls(unit: &mut Unit, body: &mut Body) -> usize {
    let known = |op: Op| {
        let plain = matches!(body.kind(op), OpKind::Call(_));
        Some((op, unit.known(unit.callee(body, op).filter(|_| plain)?)?))
    };
    let calls: Vec<(Op, ExternalFn)> = body.walk(body.root()).filter_map(known).collect();
    let mut count = devirtualize_calls(unit, body);
    for (op, f) in calls {
        if !matches!(
            f,
            ExternalFn::MathOut(_)
                | ExternalFn::Complex(_)
                | ExternalFn::System(SystemFn::Qsort | SystemFn::Bsearch)
                | ExternalFn::Reduce(_)
                | ExternalFn::Masked(_)
                | ExternalFn::Memory(MemoryFn::Realloc | MemoryFn::RustRealloc)
        ) {
            continue;
        }
        let args = unit.call_args(body, op);
        let b = &mut Builder::new(unit, body);
        b.loc = b.body.ops[op].loc;
        let meta = b.body.ops[op].meta;
        b.set_insertion_before(op);
        b.fast_math = b.body.ops[op].flags;
        let result = match f {
            ExternalFn::MathOut(f) => expand_out_parameters(b, op, f, &args),
            ExternalFn::System(f) => qsort::call(b, f, &args),
            ExternalFn::Complex(ComplexFn::Arg) => argument(b, &args).map(Some),
            ExternalFn::Complex(f) => in_double_precision(b, f, op, &args).map(Some),
            ExternalFn::Reduce(f) => scalarize_reduction(b, f, &args).map(Some),
            ExternalFn::Masked(f) => masked_memory::scalarize(b, f, &args, meta),
            ExternalFn::Memory(MemoryFn::Realloc) => Some(Some(reallocate(b, args[0], args[1]))),
            ExternalFn::Memory(MemoryFn::RustRealloc) => reallocate_rust(b, op, &args).map(Some),
            _ => None,
        };
        let Some(result) = result else {
            continue;
        };
        if let Some(new) = result {
            let old = body.result(op);
            body.replace_uses(old, new);
        }
        body.erase(op);
        count += 1;
    }
    count + sincos::fuse_sincos(unit, body) + cas_loops::recognize_atomic_add(unit, body)
}

/// Devirtualises indirect calls with a short list of possible callees. Returns the number of calls.
fn devirtualize_calls(unit: &mut Unit, body: &mut Body) -> usize {
    let listed = |op: Op| Some((op, devirtualize::targets(unit, body, op)?));
    let calls: Vec<(Op, Vec<FuncId>)> = body.walk(body.root()).filter_map(listed).collect();
    for (op, list) in &calls {
        let args = unit.call_args(body, *op);
        let b = &mut Builder::new(unit, body);
        b.loc = b.body.ops[*op].loc;
        b.set_insertion_before(*op);
        if let Some(new) = devirtualize::emit_direct_calls(b, *op, list, &args) {
            let old = body.result(*op);
            body.replace_uses(old, new);
        }
        body.erase(*op);
    }
    calls.len()
}

/// Expands a math function with an out-parameter. Returns the result of the call, if it has one; `None` if
/// the call remains.
fn expand_out_parameters(
    b: &mut Builder<'_>,
    op: Op,
    f: MultiResultMathFn,
    args: &[Value],
) -> Option<Option<Value>> {
    let ty = b.body.ty(args[0]);
    let suffix = match b.unit.types.get(ty) {
        Type::Float(FloatKind::F64) => "f64",
        Type::Float(FloatKind::F32) => "f32",
        _ => return None,
    };
    match f {
        MultiResultMathFn::Sincos => {
            let pair = pair_call(b, &format!("llvm.sincos.{suffix}"), args[0], ty);
            let sin = store_second(b, pair, args[2]);
            b.store(sin, args[1]);
            Some(None)
        }
        MultiResultMathFn::Modf => {
            let pair = pair_call(b, &format!("llvm.modf.{suffix}"), args[0], ty);
            Some(Some(store_second(b, pair, args[1])))
        }
        MultiResultMathFn::Frexp => {
            let int = b.unit.types.int(32);
            let pair = pair_call(b, &format!("llvm.frexp.{suffix}.i32"), args[0], int);
            Some(Some(store_second(b, pair, args[1])))
        }
        MultiResultMathFn::LgammaR => split_float_result(b, op, MathFn::Lgamma, &args[..1]),
        MultiResultMathFn::Remquo => split_float_result(b, op, MathFn::Remainder, &args[..2]),
        MultiResultMathFn::SincosPair
        | MultiResultMathFn::SincospiPair
        | MultiResultMathFn::ModfPair
        | MultiResultMathFn::FrexpPair => None,
    }
}

/// Emits a call of a function that returns only the float. The original call remains for the integer behind
/// its pointer.
fn split_float_result(
    b: &mut Builder<'_>,
    op: Op,
    f: MathFn,
    args: &[Value],
) -> Option<Option<Value>> {
    if !b.body.has_uses(b.body.result(op)) {
        return None;
    }
    let kind = b.body.kind(op).clone();
    let operands: Vec<Value> = b.body.operands(op).collect();
    let ty = b.body.ty(b.body.result(op));
    b.value(kind, &operands, ty);
    Some(Some(math_call(b, f, args)))
}

/// Emits the argument (angle) of a complex number.
fn argument(b: &mut Builder<'_>, args: &[Value]) -> Option<Value> {
    match args {
        [x, y] => Some(math_call(b, MathFn::Atan2, &[*y, *x])),
        [pair] => {
            let (x, y) = (lane(b, *pair, 0)?, lane(b, *pair, 1)?);
            Some(math_call(b, MathFn::Atan2, &[y, x]))
        }
        _ => None,
    }
}

/// Emits a single-precision complex function as the double-precision function with rounding. A complex number
/// is a vector of two floats, except that the factors of products and quotients are passed as scalars.
fn in_double_precision(b: &mut Builder<'_>, f: ComplexFn, op: Op, args: &[Value]) -> Option<Value> {
    let ty = b.body.ty(b.body.result(op));
    let Type::Vector { len: 2, .. } = b.unit.types.get(ty) else {
        return None;
    };
    let name = match f {
        ComplexFn::Mul => "__muldc3",
        ComplexFn::Div => "__divdc3",
        _ => f.c_name()?,
    };
    let double = b.unit.types.f64();
    let mut parts = Vec::new();
    for &arg in args {
        if let Type::Float(_) = b.unit.types.get(b.body.ty(arg)) {
            parts.push(b.cast(CastOp::FPExt, arg, double));
            continue;
        }
        for number in 0..2 {
            let part = lane(b, arg, number)?;
            parts.push(b.cast(CastOp::FPExt, part, double));
        }
    }
    let pair = b.unit.types.tuple(vec![double, double]);
    let signature = b.unit.types.func(pair, vec![double; parts.len()]);
    let func = b.unit.declare(name, signature, AttrSet::default());
    let call = b.call(func, &parts);
    let whole = b.body.result(call);
    let single = b.unit.types.scalar(ty);
    let mut result = b.poison(ty);
    for number in 0..2 {
        let part = b.extract(whole, &[number]);
        let part = b.cast(CastOp::FPTrunc, part, single);
        let at = b.i64(i64::from(number));
        result = b.value(OpKind::InsertElement, &[result, part, at], ty);
    }
    Some(result)
}

/// Extracts a lane of a vector of two.
fn lane(b: &mut Builder<'_>, vector: Value, number: i64) -> Option<Value> {
    let Type::Vector { elem, len: 2, .. } = *b.unit.types.get(b.body.ty(vector)) else {
        return None;
    };
    let at = b.i64(number);
    Some(b.value(OpKind::ExtractElement, &[vector, at], elem))
}

/// Emits a sequential reduction over the lanes of a vector. Returns `None` for a reduction that has a
/// derivative, or has no floats.
fn scalarize_reduction(b: &mut Builder<'_>, f: ReduceFn, args: &[Value]) -> Option<Value> {
    let combine = match f {
        ReduceFn::Fmul => None,
        ReduceFn::Fmin => Some(MathFn::Minnum),
        ReduceFn::Fmax => Some(MathFn::Maxnum),
        ReduceFn::Fminimum => Some(MathFn::Minimum),
        ReduceFn::Fmaximum => Some(MathFn::Maximum),
        ReduceFn::Fadd
        | ReduceFn::Add
        | ReduceFn::Mul
        | ReduceFn::And
        | ReduceFn::Or
        | ReduceFn::Xor
        | ReduceFn::Smax
        | ReduceFn::Smin
        | ReduceFn::Umax
        | ReduceFn::Umin => return None,
    };
    let vector = *args.last()?;
    let Type::Vector {
        elem,
        len,
        scalable: false,
    } = *b.unit.types.get(b.body.ty(vector))
    else {
        return None;
    };
    let mut sum = (args.len() > 1).then(|| args[0]);
    for k in 0..len {
        let k = b.i64(i64::from(k));
        let lane = b.value(OpKind::ExtractElement, &[vector, k], elem);
        sum = Some(match (sum, combine) {
            (None, _) => lane,
            (Some(sum), None) => b.fmul(sum, lane),
            (Some(sum), Some(f)) => math_call(b, f, &[sum, lane]),
        });
    }
    sum
}

/// Emits `realloc` as allocation, copy and `free`, never in place. If the allocation fails, the result is
/// null and the old block remains.
fn reallocate(b: &mut Builder<'_>, old: Value, bytes: Value) -> Value {
    let (ptr, size) = (b.body.ty(old), b.body.ty(bytes));
    let fresh = memory_call(b, "malloc", ptr, &[bytes]);
    let null = b.zero(ptr);
    let had = b.icmp(IntPredicate::Ne, old, null);
    let got = b.icmp(IntPredicate::Ne, fresh, null);
    let moves = b.binary(BinaryOp::And, had, got);
    let (_, then, otherwise) = b.if_(moves, &[]);
    let place = b.set_insertion_end(then);
    let room = memory_call(b, "malloc_usable_size", size, &[old]);
    let fits = b.icmp(IntPredicate::Ult, room, bytes);
    let count = b.select(fits, room, bytes);
    copy_bytes(b, fresh, old, count);
    let free = gradus_edit::declare_free(b.unit);
    b.call(free, &[old]);
    b.yield_(&[]);
    b.set_insertion_end(otherwise);
    b.yield_(&[]);
    b.restore_insertion_point(place);
    fresh
}

/// Emits Rust's reallocation, whose functions receive sizes and alignment.
fn reallocate_rust(b: &mut Builder<'_>, op: Op, args: &[Value]) -> Option<Value> {
    const NAME: &str = "__rust_realloc";
    let &[old, old_bytes, align, bytes] = args else {
        return None;
    };
    let callee = b.unit.callee(b.body, op)?;
    let called = b.unit.functions[callee].name.clone();
    // In mangled names, the length precedes each component.
    let named = |other: &str| {
        let part = |name: &str| format!("{}_{name}", name.len());
        match called == NAME {
            true => other.to_string(),
            false => called.replace(&part(NAME), &part(other)),
        }
    };
    let (ptr, size, void) = (b.body.ty(old), b.body.ty(bytes), b.unit.types.void());
    let fresh = memory_call(b, &named("__rust_alloc"), ptr, &[bytes, align]);
    let null = b.zero(ptr);
    let got = b.icmp(IntPredicate::Ne, fresh, null);
    let (_, then, otherwise) = b.if_(got, &[]);
    let place = b.set_insertion_end(then);
    let grows = b.icmp(IntPredicate::Ult, old_bytes, bytes);
    let count = b.select(grows, old_bytes, bytes);
    copy_bytes(b, fresh, old, count);
    let signature = (b.unit.types).func(void, vec![ptr, size, b.body.ty(align)]);
    let free = (b.unit).declare(&named("__rust_dealloc"), signature, AttrSet::default());
    b.call(free, &[old, old_bytes, align]);
    b.yield_(&[]);
    b.set_insertion_end(otherwise);
    b.yield_(&[]);
    b.restore_insertion_point(place);
    Some(fresh)
}

fn copy_bytes(b: &mut Builder<'_>, to: Value, from: Value, count: Value) {
    let (ptr, size, bit) = (b.body.ty(to), b.body.ty(count), b.unit.types.int(1));
    let void = b.unit.types.void();
    let signature = b.unit.types.func(void, vec![ptr, ptr, size, bit]);
    let width = b.unit.types.int_bits(size).unwrap_or(64);
    let name = format!("llvm.memcpy.p0.p0.i{width}");
    let copy = b.unit.declare(&name, signature, AttrSet::default());
    let plain = b.bool(false);
    b.call(copy, &[to, from, count, plain]);
}

fn memory_call(b: &mut Builder<'_>, name: &str, result: TypeId, args: &[Value]) -> Value {
    let params = args.iter().map(|a| b.body.ty(*a)).collect();
    let signature = b.unit.types.func(result, params);
    let func = b.unit.declare(name, signature, AttrSet::default());
    let call = b.call(func, args);
    b.body.result(call)
}

/// Emits a call of a function that returns its result and a second value as a pair.
pub(crate) fn pair_call(b: &mut Builder<'_>, name: &str, a: Value, second: TypeId) -> Value {
    let ty = b.body.ty(a);
    let pair = b.unit.types.tuple(vec![ty, second]);
    let signature = b.unit.types.func(pair, vec![ty]);
    let func = b.unit.declare(name, signature, AttrSet::default());
    let call = b.call(func, &[a]);
    b.body.result(call)
}

fn store_second(b: &mut Builder<'_>, pair: Value, to: Value) -> Value {
    let second = b.extract(pair, &[1]);
    b.store(second, to);
    b.extract(pair, &[0])
}
