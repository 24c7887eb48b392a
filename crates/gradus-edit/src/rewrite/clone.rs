//! Clones ops and regions, into another body or within a body.
//!
//! A [`ValueMap`] maps source values to their clones and receives results and region parameters as clones are
//! emitted. A worklist clones the regions of an op after the op, hence outer values are cloned before their
//! uses.

use gradus_ir::{Body, Builder, Flags, LocId, MetaId, Op, OpKind, Region, TypeId, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Map from source values to cloned values.
#[derive(Clone, Debug, Default)]
pub struct ValueMap {
    map: HashMap<Value, Value>,
}

impl ValueMap {
    /// Returns an empty map.
    pub fn new() -> Self {
        Self::default()
    }
    /// Maps each value of `from` to the value of `to` with equal index.
    pub fn zip(from: &[Value], to: &[Value]) -> Self {
        ValueMap {
            map: from.iter().copied().zip(to.iter().copied()).collect(),
        }
    }
    /// Returns the clone of `value`, if any.
    pub fn get(&self, value: Value) -> Option<Value> {
        self.map.get(&value).copied()
    }
    /// Returns the clone of `value`, or `value` if unmapped.
    pub fn get_or_same(&self, value: Value) -> Value {
        self.get(value).unwrap_or(value)
    }
    /// Maps `value` to `copy`.
    pub fn set(&mut self, value: Value, copy: Value) {
        self.map.insert(value, copy);
    }
}

/// Clones `op` and the contents of its regions from `source` to the builder's insertion point.
///
/// Every value used but not defined within `op` must be a constant or have an entry in `map`.
///
/// # Panics
/// A missing entry in `map` is a fault of the caller, never of the input.
pub fn clone_op(source: &Body, op: Op, to: &mut Builder, map: &mut ValueMap) -> Op {
    clone_from_source(Source::Other(source), op, to, map)
}

/// Clones `op` and the contents of its regions within a body. Values without an entry in `map` are not
/// replaced.
pub fn clone_op_within(op: Op, to: &mut Builder, map: &mut ValueMap) -> Op {
    clone_from_source(Source::Same, op, to, map)
}

/// Clones all ops of a region except the terminator with [`clone_op`].
pub fn clone_ops(source: &Body, region: Region, to: &mut Builder, map: &mut ValueMap) {
    for op in source.ops_in(region) {
        if !source.kind(op).is_terminator() {
            clone_op(source, op, to, map);
        }
    }
}

/// Clones all ops of a region except the terminator with [`clone_op_within`].
pub fn clone_ops_within(region: Region, to: &mut Builder, map: &mut ValueMap) {
    let ops: Vec<Op> = to.body.ops_in(region).collect();
    for op in ops {
        if !to.body.kind(op).is_terminator() {
            clone_op_within(op, to, map);
        }
    }
}

#[derive(Clone, Copy)]
enum Source<'s> {
    Other(&'s Body),
    Same,
}

/// Op without its position in the body.
struct OpData {
    kind: OpKind,
    flags: Flags,
    loc: Option<LocId>,
    meta: Option<MetaId>,
    name: Option<Box<str>>,
    operands: SmallVec<[Value; 4]>,
    results: SmallVec<[(Value, TypeId); 2]>,
    regions: SmallVec<[Region; 2]>,
}

impl OpData {
    fn of(body: &Body, op: Op) -> Self {
        let data = &body.ops[op];
        OpData {
            kind: data.kind.clone(),
            flags: data.flags,
            loc: data.loc,
            meta: data.meta,
            name: data.name.clone(),
            operands: body.operands(op).collect(),
            results: body.results(op).iter().map(|&v| (v, body.ty(v))).collect(),
            regions: body.op_regions(op).iter().copied().collect(),
        }
    }
}

fn clone_from_source(source: Source, op: Op, to: &mut Builder, map: &mut ValueMap) -> Op {
    let mut open: Vec<(Region, Region)> = Vec::new();
    let copy = clone_op_only(source, op, to, map, &mut open);
    let place = to.set_insertion_before(copy);
    while let Some((from, into)) = open.pop() {
        let ops: Vec<Op> = match source {
            Source::Other(body) => body.ops_in(from).collect(),
            Source::Same => to.body.ops_in(from).collect(),
        };
        to.set_insertion_end(into);
        for inner in ops {
            clone_op_only(source, inner, to, map, &mut open);
        }
    }
    to.restore_insertion_point(place);
    copy
}

/// Clones the op only. Creates its regions with parameters and adds each region to the worklist `open`.
fn clone_op_only(
    source: Source,
    op: Op,
    to: &mut Builder,
    map: &mut ValueMap,
    open: &mut Vec<(Region, Region)>,
) -> Op {
    let shell = match source {
        Source::Other(body) => OpData::of(body, op),
        Source::Same => OpData::of(to.body, op),
    };
    let operands: SmallVec<[Value; 4]> = shell
        .operands
        .iter()
        .map(|&v| mapped_or_constant(source, v, to, map))
        .collect();
    let types: SmallVec<[TypeId; 2]> = shell.results.iter().map(|r| r.1).collect();
    let copy = to.op(shell.kind, &operands, &types, shell.regions.len());
    let data = &mut to.body.ops[copy];
    data.flags = shell.flags;
    data.loc = shell.loc.or(data.loc);
    data.meta = shell.meta;
    data.name = shell.name;
    for (index, &(old, _)) in shell.results.iter().enumerate() {
        map.set(old, to.body.results(copy)[index]);
    }
    for (index, &from) in shell.regions.iter().enumerate() {
        let into = to.body.op_regions(copy)[index];
        let params: SmallVec<[(Value, TypeId); 4]> = {
            let body = match source {
                Source::Other(body) => body,
                Source::Same => &*to.body,
            };
            let params = body.region_params(from).iter();
            params.map(|&v| (v, body.ty(v))).collect()
        };
        for (old, ty) in params {
            let new = to.body.add_param(into, ty);
            map.set(old, new);
        }
        open.push((from, into));
    }
    copy
}

fn mapped_or_constant(source: Source, value: Value, to: &mut Builder, map: &ValueMap) -> Value {
    if let Some(copy) = map.get(value) {
        return copy;
    }
    match source {
        Source::Same => value,
        Source::Other(body) => {
            let id = body
                .as_const(value)
                .expect("a value used by a copied op is a constant or has its copy in the map");
            to.constant(id)
        }
    }
}
