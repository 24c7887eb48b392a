//! Integer functions: LLVM intrinsics and C library functions.

use crate::bytecode::code::CallSite;
use crate::externals::Outcome;
use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{map_lanes, mask, signed};
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};
use gradus_ir::externals::IntFn;

impl Machine<'_> {
    pub(crate) fn integer(&mut self, id: IntFn, site: &CallSite, args: &[Value]) -> Eval<Outcome> {
        let Some((_, result)) = &site.result else {
            return Ok(Outcome::Nothing);
        };
        let shape = site
            .arg_shapes
            .first()
            .and_then(|s| s.as_ref())
            .unwrap_or(result);
        let Some(num) = shape.num() else {
            return fault(TrapKind::BadCall, "integer arithmetic on an aggregate");
        };
        if let Some(value) = special(id, result, num, args)? {
            return Ok(Outcome::Value(value));
        }
        let bits = num.bits();
        let lanes = shape.lanes();
        let out = result.num().map_or(bits, Num::bits);
        let at = |i: usize, lane: usize| match args.get(i) {
            Some(Value::Elements(_)) | None => args.get(i).map_or(Value::Poison, |v| v.lane(lane)),
            Some(value) => value.clone(),
        };
        let one = |lane: usize| -> Eval<(Value, Value)> {
            let values: Vec<Value> = (0..args.len()).map(|i| at(i, lane)).collect();
            let numbers: Option<Vec<u128>> = values.iter().map(Value::wide).collect();
            match numbers {
                Some(numbers) => scalar(id, bits, out, &numbers),
                None if values.contains(&Value::Poison) => Ok((Value::Poison, Value::Poison)),
                None => Ok((Value::UNDEF, Value::UNDEF)),
            }
        };
        let pairs: Vec<(Value, Value)> = (0..lanes.unwrap_or(1)).map(one).collect::<Eval<_>>()?;
        let (values, flags): (Vec<Value>, Vec<Value>) = pairs.into_iter().unzip();
        let join = |values: Vec<Value>| match lanes {
            Some(_) => Value::Elements(values.into()),
            None => values.into_iter().next().unwrap_or(Value::Poison),
        };
        Ok(Outcome::Value(match result {
            Shape::Aggregate(_) => Value::Elements([join(values), join(flags)].into()),
            _ => join(values),
        }))
    }
}

/// Evaluates functions that are not computed lane by lane from the arguments; `None` for all other functions.
fn special(id: IntFn, result: &Shape, num: Num, args: &[Value]) -> Eval<Option<Value>> {
    let len = result.lanes().unwrap_or(1);
    match id {
        IntFn::Stepvector => Ok(Some(Value::Elements(
            (0..len as u64).map(Value::Bits).collect(),
        ))),
        IntFn::ActiveLaneMask => match (args[0].wide(), args[1].wide()) {
            (Some(base), Some(end)) => {
                let lane = |i: usize| Value::bool(base + (i as u128) < end);
                Ok(Some(Value::Elements((0..len).map(lane).collect())))
            }
            _ => Ok(Some(Value::Poison)),
        },
        IntFn::Vscale => fault(TrapKind::Unsupported, "a query of the vector length"),
        IntFn::Character => fault(TrapKind::Unsupported, "a query of character classes"),
        IntFn::Abs => {
            let bits = num.bits();
            let poison = args.get(1).and_then(Value::bits) == Some(1);
            let one = |a: &Value| {
                Ok(match a.wide() {
                    Some(n) if poison && n == 1 << (bits - 1) => Value::Poison,
                    Some(n) => Value::number(bits, signed(bits, n).unsigned_abs() & mask(bits)),
                    None => a.clone(),
                })
            };
            map_lanes(result.lanes(), &args[0], one).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the result and the overflow flag for one lane.
// table
fn scalar(id: IntFn, bits: u32, out: u32, n: &[u128]) -> Eval<(Value, Value)> {
    use IntFn::*;
    let a = n[0];
    let b = n.get(1).copied().unwrap_or(0);
    let c = n.get(2).copied().unwrap_or(0);
    let (sa, sb) = (signed(bits, a), signed(bits, b));
    let all = mask(bits);
    let (least, most) = (signed(bits, 1 << (bits - 1)), (all >> 1) as i128);
    let plain = |n: u128| Ok((Value::number(out, n & mask(out)), Value::bool(false)));
    let signed_overflow = |n: Option<i128>, wrapped: u128| {
        let fits = n.is_some_and(|n| (least..=most).contains(&n));
        Ok((Value::number(bits, wrapped & all), Value::bool(!fits)))
    };
    let unsigned_overflow = |n: Option<u128>, wrapped: u128| {
        let fits = n.is_some_and(|n| n <= all);
        Ok((Value::number(bits, wrapped & all), Value::bool(!fits)))
    };
    let clamp = |n: Option<i128>, negative: bool| {
        let bound = if negative { least } else { most };
        plain(n.map_or(bound, |n| n.clamp(least, most)) as u128)
    };
    let shift = (c % u128::from(bits)) as u32;
    match id {
        Smax => plain(sa.max(sb) as u128),
        Smin => plain(sa.min(sb) as u128),
        Umax => plain(a.max(b)),
        Umin => plain(a.min(b)),
        CAbs => plain(sa.unsigned_abs()),
        Ctpop => plain(u128::from(a.count_ones())),
        Ctlz | Cttz if a == 0 && b == 1 => Ok((Value::Poison, Value::Poison)),
        Ctlz => plain(u128::from(a.leading_zeros() - (128 - bits))),
        Cttz => plain(u128::from(a.trailing_zeros().min(bits))),
        Bswap => plain(a.swap_bytes() >> (128 - bits)),
        Bitreverse => plain(a.reverse_bits() >> (128 - bits)),
        Fshl if shift == 0 => plain(a),
        Fshl => plain(a << shift | b >> (bits - shift)),
        Fshr if shift == 0 => plain(b),
        Fshr => plain(b >> shift | a << (bits - shift)),
        SaddOverflow => signed_overflow(sa.checked_add(sb), a.wrapping_add(b)),
        SsubOverflow => signed_overflow(sa.checked_sub(sb), a.wrapping_sub(b)),
        SmulOverflow => signed_overflow(sa.checked_mul(sb), a.wrapping_mul(b)),
        UaddOverflow => unsigned_overflow(a.checked_add(b), a.wrapping_add(b)),
        UsubOverflow => unsigned_overflow(a.checked_sub(b), a.wrapping_sub(b)),
        UmulOverflow => unsigned_overflow(a.checked_mul(b), a.wrapping_mul(b)),
        SaddSat => clamp(sa.checked_add(sb), sa < 0),
        SsubSat => clamp(sa.checked_sub(sb), sa < 0),
        UaddSat => plain(a.checked_add(b).map_or(all, |n| n.min(all))),
        UsubSat => plain(a.saturating_sub(b)),
        SshlSat | UshlSat if b >= u128::from(bits) => Ok((Value::Poison, Value::Poison)),
        SshlSat => {
            let shifted = sa.checked_mul(1i128.checked_shl(b as u32).unwrap_or(i128::MAX));
            clamp(shifted, sa < 0)
        }
        UshlSat => plain(if a > all >> b as u32 {
            all
        } else {
            a << b as u32
        }),
        Scmp => plain(sa.cmp(&sb) as i128 as u128),
        Ucmp => plain(a.cmp(&b) as i128 as u128),
        Ptrmask => plain(a & b),
        Ffs => plain(if a == 0 {
            0
        } else {
            u128::from(a.trailing_zeros() + 1)
        }),
        Abs | Stepvector | ActiveLaneMask | Vscale | Character => {
            fault(TrapKind::Unsupported, "an unsupported integer function")
        }
    }
}
