//! Memory that a program uses again as another type: what it hands out of a pool of its own.
//!
//! Type tags tell accesses apart on the premise that memory keeps its type. C and C++ do not ask for that of allocated
//! memory: a store makes it what is stored there. An optimiser gets by, as it moves accesses a little; a return sweep
//! reads long afterwards what lay there. So tags count only for memory in which they never contradict each other:
//! where no two accesses to bytes of a class that are the same have tags that say that they are not.

use crate::closure::Closure;
use crate::memory::{ClassId, Memory};
use crate::tbaa;
use gradus_ir::{Body, FuncId, Op, OpKind, TbaaTag, Unit, Value};
use std::collections::{HashMap, HashSet};

/// The classes of memory that a closure uses as several types.
#[derive(Clone, Debug, Default)]
pub struct Retyped {
    classes: HashSet<ClassId>,
}

/// What is accessed at an offset: so many bytes, by this name.
type Tagged = (i64, i64, TbaaTag);

impl Retyped {
    /// Looks at all accesses of a closure.
    pub fn of(unit: &Unit, closure: &Closure, memory: &Memory) -> Retyped {
        let mut by_class: HashMap<ClassId, HashSet<Tagged>> = HashMap::new();
        for &func in closure.functions() {
            let Some(body) = unit.functions[func].body.as_deref() else {
                continue;
            };
            for op in body.walk(body.root()) {
                let Some((ptr, bytes, tag)) = tagged(unit, body, op) else {
                    continue;
                };
                if let Some(place) = memory.place(func, ptr) {
                    let offset = memory.get(place.class).normal(place.offset_bytes);
                    let all = by_class.entry(place.class).or_default();
                    all.insert((offset, bytes, tag));
                }
            }
        }
        let several = |(class, all): (ClassId, HashSet<Tagged>)| {
            let all: Vec<Tagged> = all.into_iter().collect();
            let modulus = memory.get(class).modulus_bytes as i64;
            let contradicts = |(i, a): (usize, &Tagged)| {
                let mut others = all[i + 1..].iter();
                others.any(|b| meet(a, b, modulus) && !tbaa::may_alias(unit, &a.2, &b.2))
            };
            all.iter().enumerate().any(contradicts).then_some(class)
        };
        Retyped {
            classes: by_class.into_iter().filter_map(several).collect(),
        }
    }

    /// The accesses of a body to such memory.
    pub fn accesses(&self, unit: &Unit, memory: &Memory, func: FuncId, body: &Body) -> HashSet<Op> {
        let is_retyped = |op: &Op| {
            let class = tagged(unit, body, *op).and_then(|(ptr, ..)| memory.class(func, ptr));
            class.is_some_and(|class| self.classes.contains(&class))
        };
        body.walk(body.root()).filter(is_retyped).collect()
    }
}

/// Where an op accesses memory, how many bytes, and by what tag.
fn tagged(unit: &Unit, body: &Body, op: Op) -> Option<(Value, i64, TbaaTag)> {
    let (pointer, ty) = match body.kind(op) {
        OpKind::Load(_) => (0, body.ty(body.result(op))),
        OpKind::Store(_) => (1, body.ty(body.operand(op, 0))),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => (0, body.ty(body.operand(op, 1))),
        _ => return None,
    };
    let tag = unit.meta(body.ops[op].meta?).tbaa?;
    let bytes = unit.layout.size_bytes(unit, ty) as i64;
    Some((body.operand(op, pointer), bytes, tag))
}

/// Whether two accesses touch a byte in common, at offsets that repeat after `modulus` bytes, where that is not 0.
fn meet(a: &Tagged, b: &Tagged, modulus: i64) -> bool {
    let behind = |from: &Tagged, to: &Tagged| match modulus {
        0 => to.0 - from.0,
        m => (to.0 - from.0).rem_euclid(m),
    };
    let reaches = |from: &Tagged, to: &Tagged| (0..from.1).contains(&behind(from, to));
    reaches(a, b) || reaches(b, a)
}
