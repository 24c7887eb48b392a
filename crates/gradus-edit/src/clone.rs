//! Copies of ops and regions, into another body or elsewhere in the same one.
//!
//! A [`ValueMap`] says which value of the copy stands for which value of the source; results and
//! parameters of what is copied are entered as they are made. Regions are copied with a work list:
//! an op's regions after the op itself, so that outer values always have their copies first.

use gradus_ir::{Body, Builder, Flags, LocId, MetaId, Op, OpKind, Region, TypeId, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Which value of a copy stands for which value of the source.
#[derive(Clone, Debug, Default)]
pub struct ValueMap {
    map: HashMap<Value, Value>,
}

impl ValueMap {
    /// A map without entries.
    pub fn new() -> Self {
        Self::default()
    }
    /// A map of each value of `from` to the one of `to` at the same place.
    pub fn zip(from: &[Value], to: &[Value]) -> Self {
        ValueMap {
            map: from.iter().copied().zip(to.iter().copied()).collect(),
        }
    }
    /// What stands for `value`.
    pub fn get(&self, value: Value) -> Option<Value> {
        self.map.get(&value).copied()
    }
    /// What stands for `value`; `value` itself where nothing is entered.
    pub fn get_or_same(&self, value: Value) -> Value {
        self.get(value).unwrap_or(value)
    }
    /// From now on `copy` stands for `value`.
    pub fn set(&mut self, value: Value, copy: Value) {
        self.map.insert(value, copy);
    }
}

/// Copies `op` with everything in its regions from `source` to the builder's place.
///
/// Every value that it uses and does not define must be a constant or have an entry in `map`.
///
/// # Panics
/// Where such an entry is missing: that is a fault of the caller, never of the input.
pub fn clone_op(source: &Body, op: Op, to: &mut Builder, map: &mut ValueMap) -> Op {
    clone_from(Source::Other(source), op, to, map)
}

/// Copies `op` with everything in its regions to another place of its own body. Values without an
/// entry in `map` stay as they are.
pub fn clone_op_within(op: Op, to: &mut Builder, map: &mut ValueMap) -> Op {
    clone_from(Source::Same, op, to, map)
}

/// Copies all ops of a region, without its terminator, as [`clone_op`] does.
pub fn clone_ops(source: &Body, region: Region, to: &mut Builder, map: &mut ValueMap) {
    for op in source.ops_in(region) {
        if !source.kind(op).is_terminator() {
            clone_op(source, op, to, map);
        }
    }
}

/// Copies all ops of a region, without its terminator, as [`clone_op_within`] does.
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

/// All that makes up an op, apart from where it stands.
struct Shell {
    kind: OpKind,
    flags: Flags,
    loc: Option<LocId>,
    meta: Option<MetaId>,
    name: Option<Box<str>>,
    operands: SmallVec<[Value; 4]>,
    results: SmallVec<[(Value, TypeId); 2]>,
    regions: SmallVec<[Region; 2]>,
}

impl Shell {
    fn of(body: &Body, op: Op) -> Self {
        let data = &body.ops[op];
        Shell {
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

fn clone_from(source: Source, op: Op, to: &mut Builder, map: &mut ValueMap) -> Op {
    let mut open: Vec<(Region, Region)> = Vec::new();
    let copy = clone_shell(source, op, to, map, &mut open);
    let place = to.at_op(copy);
    while let Some((from, into)) = open.pop() {
        let ops: Vec<Op> = match source {
            Source::Other(body) => body.ops_in(from).collect(),
            Source::Same => to.body.ops_in(from).collect(),
        };
        to.at_end(into);
        for inner in ops {
            clone_shell(source, inner, to, map, &mut open);
        }
    }
    to.restore(place);
    copy
}

/// Copies the op alone; its regions are made with their parameters and entered in `open`.
fn clone_shell(
    source: Source,
    op: Op,
    to: &mut Builder,
    map: &mut ValueMap,
    open: &mut Vec<(Region, Region)>,
) -> Op {
    let shell = match source {
        Source::Other(body) => Shell::of(body, op),
        Source::Same => Shell::of(to.body, op),
    };
    let operands: SmallVec<[Value; 4]> = shell
        .operands
        .iter()
        .map(|&v| copy_of(source, v, to, map))
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

fn copy_of(source: Source, value: Value, to: &mut Builder, map: &ValueMap) -> Value {
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
