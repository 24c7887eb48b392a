//! Constraints and type evidence of loads, stores and parameters.

use crate::points_to::inclusion::build::BodyBuilder;
use crate::points_to::inclusion::constraints::{Constraint, NodeId, NodeKind, Step};
use crate::points_to::inclusion::objects::ObjectKey;
use crate::types::lattice::{CellType, tbaa_type};
use gradus_ir::{AttrValue, Op, OpKind, TbaaTag, Type, TypeId, Value};

/// Maximal number of pointers in an access that get cells of their own.
const WORDS_MAX: u64 = 64;

impl BodyBuilder<'_, '_> {
    /// Adds the constraints of a load of `value` from `ptr`.
    pub fn load(&mut self, op: Op, ptr: Value, value: Value) {
        let tag = self.tag(op);
        self.access(op, ptr, value, |to, kind, ptr, bytes| match kind {
            NodeKind::Part => Constraint::LoadBits { to, ptr, bytes },
            NodeKind::Word | NodeKind::Pointer => Constraint::Load {
                to,
                ptr,
                bytes,
                tag,
            },
        });
    }
    /// Adds the constraints of a store of `value` to `ptr`.
    pub fn store(&mut self, op: Op, ptr: Value, value: Value) {
        let tag = self.tag(op);
        self.moved_bytes(ptr, value);
        self.access(op, ptr, value, |from, kind, ptr, bytes| match kind {
            NodeKind::Part => Constraint::StoreBits { ptr, bytes, from },
            NodeKind::Word | NodeKind::Pointer => Constraint::Store {
                ptr,
                bytes,
                from,
                tag,
            },
        });
    }
    /// A store of loaded bytes is a byte copy: a loop of them copies whole addresses.
    fn moved_bytes(&mut self, to: Value, value: Value) {
        let unit = self.builder.unit;
        let ty = self.body.ty(value);
        let is_bytes = unit.types.int_bits(unit.types.scalar(ty)) == Some(8);
        let load = self.body.def_op(value).filter(|_| is_bytes);
        let load = load.filter(|load| matches!(self.body.kind(*load), OpKind::Load(_)));
        if let Some(load) = load
            && let (Some(to), Some(from)) = (self.node(to), self.node(self.body.operand(load, 0)))
        {
            self.builder.program.push(Constraint::CopyBytes {
                to,
                from,
                size_bytes: Some(unit.layout.store_bytes(unit, ty)),
            });
        }
    }
    fn tag(&self, op: Op) -> Option<TbaaTag> {
        let meta = self.body.ops[op].meta?;
        self.builder.unit.meta(meta).tbaa
    }
    fn access(
        &mut self,
        op: Op,
        ptr: Value,
        value: Value,
        constraint: impl Fn(NodeId, NodeKind, NodeId, i64) -> Constraint,
    ) {
        let unit = self.builder.unit;
        let Some(place) = self.node(ptr) else {
            unreachable!("the address of an access is a pointer");
        };
        let ty = self.body.ty(value);
        let nodes = self.nodes(value);
        let tag = self.tag(op);
        let tagged = tag.map_or(CellType::NOTHING, |tag| tbaa_type(unit, tag.access));
        if let Some(tag) = tag {
            self.note_tbaa_base(place, tag);
        }
        for (leaf, node) in nodes.into_iter().enumerate() {
            let leaf = self.builder.leaves.get(ty)[leaf];
            let at = leaf.offset_bytes as i64;
            let mut seen = self.access_evidence(leaf.ty);
            if seen.is_nothing() {
                seen = tagged;
            }
            self.note_elements(place, at, leaf.ty, seen);
            let Some(node) = node else { continue };
            let kind = self.builder.program.kinds[node.0 as usize];
            let word = unit.layout.pointer_bytes;
            let bytes = unit.layout.store_bytes(unit, leaf.ty);
            if bytes / word > WORDS_MAX {
                let words = self.builder.program.node();
                self.builder.program.push(Constraint::Moved {
                    to: words,
                    from: place,
                    step: Step {
                        offset: at,
                        index: 0,
                        stride: word,
                        forward: true,
                        passes_end: false,
                        array: Some((at, Some(at + bytes as i64))),
                        in_fortran: false,
                    },
                });
                let access = constraint(node, kind, words, 0).without_tag();
                self.builder.program.push(access);
                continue;
            }
            for k in 0..(bytes / word).clamp(1, WORDS_MAX) {
                let at = at + (k * word) as i64;
                let access = constraint(node, kind, place, at);
                // The tag names the first word of an access.
                let access = if at == 0 {
                    access
                } else {
                    access.without_tag()
                };
                self.builder.program.push(access);
            }
        }
    }
    /// Returns the evidence from an access of this scalar or vector type.
    pub fn access_evidence(&self, ty: TypeId) -> CellType {
        let types = &self.builder.unit.types;
        match types.get(types.scalar(ty)) {
            Type::Float(kind) => CellType::float(*kind),
            Type::Ptr(_) => CellType::POINTER,
            _ => CellType::NOTHING,
        }
    }
    /// Records `seen` at every element of a scalar or vector of type `ty`, `at` bytes behind `place`.
    pub fn note_elements(&mut self, place: NodeId, at: i64, ty: TypeId, seen: CellType) {
        if seen.is_nothing() {
            return;
        }
        let unit = self.builder.unit;
        let (elem, count) = match *unit.types.get(ty) {
            Type::Vector { elem, len, .. } => (elem, i64::from(len)),
            _ => (ty, 1),
        };
        let bytes = unit.layout.store_bytes(unit, elem) as i64;
        let cells = (0..count).map(|k| (place, at + k * bytes, seen));
        self.builder.program.evidence.cells.extend(cells);
    }
    fn note_tbaa_base(&mut self, place: NodeId, tag: TbaaTag) {
        if tag.base != tag.access {
            let at = -(tag.offset_bytes as i64);
            let bases = &mut self.builder.program.evidence.tbaa_bases;
            bases.push((place, at, tag.base));
        }
    }
    /// Adds the objects and types of parameters with `byval` and `sret` attributes.
    pub fn params(&mut self) {
        let unit = self.builder.unit;
        let attrs = unit.attrs(unit.functions[self.func].attrs);
        for (index, &param) in self.body.params().iter().enumerate() {
            let named = |name| match attrs.param(index, name) {
                Some(AttrValue::Type(ty)) => Some(*ty),
                _ => None,
            };
            let Some(node) = self.node(param) else {
                continue;
            };
            if let Some(ty) = named("byval") {
                let key = ObjectKey::ByValue(self.func, index as u32, self.context);
                let object = self.builder.objects.of(key);
                self.builder.program.address(node, object, 0);
                self.builder.declare(object, ty);
            } else if let Some(ty) = named("sret") {
                self.builder.program.evidence.sources.push((node, ty));
            }
        }
    }
}
