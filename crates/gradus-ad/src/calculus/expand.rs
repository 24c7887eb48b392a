//! Math functions that give a second result behind a pointer become ones that give a structure,
//! and stores: `sincos(a, &s, &c)` → two calls, `modf(a, &w)` and `frexp(a, &e)` → LLVM's pairs.
//!
//! Runs on the primal before anything is asked about it; the meaning stays the same.

use super::build::math_call;
use gradus_ir::known::{Known, MathFn, MathOutFn};
use gradus_ir::{AttrSet, Body, Builder, FloatKind, Op, Type, TypeId, Unit, Value};

/// Rewrites all such calls of a body; gives their number.
pub fn expand_outputs(unit: &mut Unit, body: &mut Body) -> usize {
    let calls: Vec<(Op, MathOutFn)> = body
        .walk(body.root())
        .filter_map(|op| match unit.known(unit.callee(body, op)?)? {
            Known::MathOut(f) => Some((op, f)),
            _ => None,
        })
        .collect();
    let mut count = 0;
    for (op, f) in calls {
        let args = unit.call_args(body, op);
        let b = &mut Builder::new(unit, body);
        b.loc = b.body.ops[op].loc;
        b.at_op(op);
        let Some(result) = expand(b, f, &args) else {
            continue;
        };
        if let Some(new) = result {
            let old = body.result(op);
            body.replace_uses(old, new);
        }
        body.erase(op);
        count += 1;
    }
    count
}

/// The call's result, where it has one; `None` where the call stays.
fn expand(b: &mut Builder<'_>, f: MathOutFn, args: &[Value]) -> Option<Option<Value>> {
    let ty = b.body.ty(args[0]);
    let suffix = match b.unit.types.get(ty) {
        Type::Float(FloatKind::F64) => "f64",
        Type::Float(FloatKind::F32) => "f32",
        _ => return None,
    };
    match f {
        MathOutFn::Sincos => {
            let sin = math_call(b, MathFn::Sin, &args[..1]);
            let cos = math_call(b, MathFn::Cos, &args[..1]);
            b.store(sin, args[1]);
            b.store(cos, args[2]);
            Some(None)
        }
        MathOutFn::Modf => {
            let pair = pair_call(b, &format!("llvm.modf.{suffix}"), args[0], ty);
            Some(Some(store_second(b, pair, args[1])))
        }
        MathOutFn::Frexp => {
            let int = b.unit.types.int(32);
            let pair = pair_call(b, &format!("llvm.frexp.{suffix}.i32"), args[0], int);
            Some(Some(store_second(b, pair, args[1])))
        }
        MathOutFn::SincosPair
        | MathOutFn::SincospiPair
        | MathOutFn::ModfPair
        | MathOutFn::FrexpPair
        | MathOutFn::LgammaR
        | MathOutFn::Remquo => None,
    }
}

fn pair_call(b: &mut Builder<'_>, name: &str, a: Value, second: TypeId) -> Value {
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
