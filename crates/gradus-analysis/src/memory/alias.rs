//! Alias analysis of two accesses in one body.
//!
//! Facts, each resting on an axiom and a switch in [`AliasOptions`]: distinct objects, escape, `noalias`
//! arguments, TBAA tags, alias scopes, constant offsets, strides, ranges of loop indices, `errno`, and
//! assumptions of the caller. Queries refer to a *frame*: the loop whose iteration is fixed. Values defined
//! in other loops inside the frame may differ between the two accesses.
//!
//! Two pointers that a loop carries and exchanges (double buffering) are disjoint by induction over the
//! iterations: the initial objects are distinct, and distinct current objects imply distinct next objects.

use crate::cfg::nesting::Nest;
use crate::memory::distance;
use crate::memory::effects::{AccessKind, Effects, MemoryAccess, MemoryRegion};
use crate::memory::local_points_to::{
    Object, ObjectId, PointsTo, Targets, UNKNOWN, is_constant_memory,
};
use crate::scev::poly::{BaseValue, Poly, PolyForms};
use crate::types::tbaa;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{AttrValue, Body, Definition, FuncId, MetaId, Op, OpKind, ScopeId, Unit, Value};
use std::collections::HashSet;

/// Facts that alias analysis may use. All are on by default; each is an axiom.
#[derive(Clone, Debug)]
pub struct AliasOptions {
    /// Objects: allocations, argument memory and globals are distinct (LLVM's provenance rules).
    pub objects: bool,
    /// Escape: no unknown pointer points into memory that has not escaped.
    pub escape: bool,
    /// `noalias` arguments: memory modified through the argument is accessed through no other pointer.
    pub noalias: bool,
    /// TBAA tags (strict aliasing of the source language).
    pub tbaa: bool,
    /// Alias scopes.
    pub scopes: bool,
    /// Offsets from a common base that differ by a constant or by multiples of a stride.
    pub offsets: bool,
    /// Loop indices are below their trip counts.
    pub ranges: bool,
    /// `errno` is accessed only through the result of a call.
    pub errno: bool,
    /// Iterations of a parallel loop have no data races: no iteration writes memory that another reads.
    pub race_free: bool,
    /// Pairs of base values with disjoint objects, tested at run time or known to the caller.
    pub assume_disjoint: Vec<(BaseValue, BaseValue)>,
    /// Pairs of arguments with disjoint objects.
    pub assume_disjoint_params: Vec<(u32, u32)>,
    /// Accesses to memory with conflicting types ([`crate::TbaaConflicts`]). Tags and scopes do not constrain
    /// later accesses to such memory.
    pub retyped: HashSet<Op>,
}

impl Default for AliasOptions {
    fn default() -> Self {
        AliasOptions {
            objects: true,
            escape: true,
            noalias: true,
            tbaa: true,
            scopes: true,
            offsets: true,
            ranges: true,
            errno: true,
            race_free: true,
            assume_disjoint: Vec::new(),
            assume_disjoint_params: Vec::new(),
            retyped: HashSet::new(),
        }
    }
}

/// Alias facts of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct Alias<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// The body.
    pub body: &'a Body,
    /// The region nesting of the body.
    pub nest: Nest,
    /// The points-to sets of the body.
    pub points_to: PointsTo,
    /// Integers and addresses as polynomials.
    pub forms: PolyForms,
    options: AliasOptions,
    noalias_params: Vec<bool>,
    dereferenceable: Vec<Option<u64>>,
    scopes_vary: bool,
}

impl<'a> Alias<'a> {
    /// Analyses a body. `func` supplies the parameter attributes, if known.
    pub fn new(
        unit: &'a Unit,
        func: Option<FuncId>,
        body: &'a Body,
        effects: &Effects,
        options: &AliasOptions,
    ) -> Alias<'a> {
        let nest = Nest::of(body);
        let points_to = PointsTo::of(unit, func, body, &nest, effects);
        let attrs = func.map(|func| unit.attrs(unit.functions[func].attrs));
        let noalias = |index| attrs.is_some_and(|a| a.param(index, "noalias").is_some());
        let dereferenceable = |index| match attrs?.param(index, "dereferenceable") {
            Some(AttrValue::Int(bytes)) => Some(*bytes),
            _ => None,
        };
        let scopes_vary = body.walk(body.root()).any(|op| {
            nest.loop_depth(op) > 0
                && unit.known_callee(body, op)
                    == Some(ExternalFn::Marker(CompilerIntrinsic::NoaliasScopeDecl))
        });
        Alias {
            unit,
            body,
            points_to,
            forms: PolyForms::of(unit, body),
            options: options.clone(),
            noalias_params: (0..body.params().len()).map(noalias).collect(),
            dereferenceable: (0..body.params().len()).map(dereferenceable).collect(),
            scopes_vary,
            nest,
        }
    }

    /// Returns true if two accesses, at least one a write, may alias within one iteration of all loops that
    /// contain both.
    pub fn may_alias(&self, a: &MemoryAccess, b: &MemoryAccess) -> bool {
        let common = self.nest.common_loop(a.op, b.op);
        !self.disjoint(a, b, common)
    }
    /// Returns true if two accesses, at least one a write, may alias in any two iterations of their loops.
    pub fn may_alias_any_iteration(&self, a: &MemoryAccess, b: &MemoryAccess) -> bool {
        !self.disjoint(a, b, None)
    }
    /// Returns true if two accesses, at least one a write, may alias within one iteration of `frame`, in
    /// any iterations of the loops inside it. `None` stands for one run of the body.
    pub fn may_alias_within(&self, a: &MemoryAccess, b: &MemoryAccess, frame: Option<Op>) -> bool {
        !self.disjoint(a, b, frame)
    }

    /// Returns true if an access is to memory with conflicting TBAA types.
    pub(crate) fn is_retyped(&self, op: Op) -> bool {
        self.options.retyped.contains(&op)
    }

    /// Returns the number of bytes behind an argument that the host declares dereferenceable.
    pub fn dereferenceable(&self, param: u32) -> Option<u64> {
        self.dereferenceable.get(param as usize).copied().flatten()
    }

    // ---- objects of an access --------------------------------------------------------------

    /// Returns the objects that an access may touch. [`UNKNOWN`] stands for all memory reachable by the
    /// program. Returns `None` for `errno` and memory without pointers.
    pub fn objects(&self, access: &MemoryAccess) -> Option<Targets> {
        let unknown = || {
            let mut set = Targets::new();
            set.push(crate::memory::local_points_to::PointsToTarget {
                object: UNKNOWN,
                old: false,
            });
            set
        };
        match access.place {
            MemoryRegion::At(ptr) => {
                let set = self.points_to.targets(self.body, ptr);
                Some(match self.options.objects && !set.is_empty() {
                    true => Targets::from_slice(set),
                    false => unknown(),
                })
            }
            MemoryRegion::Global(global) => {
                Some(match self.points_to.find(Object::Global(global)) {
                    Some(object) if self.options.objects => {
                        let mut set = Targets::new();
                        set.push(crate::memory::local_points_to::PointsToTarget {
                            object,
                            old: false,
                        });
                        set
                    }
                    _ => unknown(),
                })
            }
            MemoryRegion::Reachable => Some(unknown()),
            MemoryRegion::Frame => Some(self.dynamic_stack()),
            MemoryRegion::Errno | MemoryRegion::Inaccessible => None,
        }
    }

    /// Returns the stack objects that a stack restore may free: all except constant-size allocas in the
    /// body's root region.
    fn dynamic_stack(&self) -> Targets {
        let made_at_entry = |op: Op| {
            self.body.parent(op) == Some(self.body.root())
                && self
                    .body
                    .as_int(self.unit, self.body.operand(op, 0))
                    .is_some()
        };
        (0..self.points_to.len() as u32)
            .map(ObjectId)
            .filter(
                |id| matches!(self.points_to.object(*id), Object::Stack(op) if !made_at_entry(op)),
            )
            .map(|object| crate::memory::local_points_to::PointsToTarget { object, old: true })
            .collect()
    }

    /// Returns true if the objects behind two pointers may alias, at any offsets.
    pub fn pointees_may_alias(&self, a: Value, b: Value) -> bool {
        let (a, b) = (
            self.points_to.targets(self.body, a),
            self.points_to.targets(self.body, b),
        );
        let meet = |x: ObjectId| b.iter().any(|y| self.objects_may_alias(x, y.object, false));
        a.is_empty() || b.is_empty() || a.iter().any(|x| meet(x.object))
    }

    /// Returns true if two objects may share memory. `noalias` constrains modifications only and does not
    /// apply if an object is freed.
    pub fn objects_may_alias(&self, a: ObjectId, b: ObjectId, freed: bool) -> bool {
        if a == b || !self.options.objects {
            return true;
        }
        let (x, y) = (self.points_to.object(a), self.points_to.object(b));
        if matches!(x, Object::Code(_)) || matches!(y, Object::Code(_)) {
            return false;
        }
        match (self.points_to.is_local(a), self.points_to.is_local(b)) {
            (true, true) => false,
            (true, false) => self.unknown_may_alias_local(y, a),
            (false, true) => self.unknown_may_alias_local(x, b),
            (false, false) => {
                freed && !matches!((x, y), (Object::Global(_), Object::Global(_)))
                    || self.nonlocal_may_alias(x, a, y, b)
            }
        }
    }

    fn unknown_may_alias_local(&self, stranger: Object, local: ObjectId) -> bool {
        let known_apart = is_planted(Mutant::EscapeForgotten);
        stranger == Object::Unknown
            && !known_apart
            && (self.points_to.escaped(local) || !self.options.escape)
    }

    fn nonlocal_may_alias(&self, x: Object, a: ObjectId, y: Object, b: ObjectId) -> bool {
        let of_argument = |object| matches!(object, Object::Param(_));
        if is_planted(Mutant::ArgumentsNeverAlias) && (of_argument(x) || of_argument(y)) {
            return false;
        }
        match (x, y) {
            (Object::Global(_), Object::Global(_)) => false,
            (Object::Param(i), Object::Param(j)) => {
                !(self.is_noalias(i) || self.is_noalias(j) || self.is_assumed_disjoint(i, j))
            }
            (Object::Param(i), _) => {
                !self.is_noalias(i) || self.points_to.escaped(a) && y == Object::Unknown
            }
            (_, Object::Param(j)) => {
                !self.is_noalias(j) || self.points_to.escaped(b) && x == Object::Unknown
            }
            _ => true,
        }
    }

    fn is_noalias(&self, param: u32) -> bool {
        self.options.noalias && self.noalias_params.get(param as usize) == Some(&true)
    }

    fn is_assumed_disjoint(&self, i: u32, j: u32) -> bool {
        let pairs = &self.options.assume_disjoint_params;
        pairs.iter().any(|&p| p == (i, j) || p == (j, i))
    }

    /// Returns true if objects that have not escaped are distinguished from all other memory.
    pub(crate) fn distinguishes_private_objects(&self) -> bool {
        self.options.objects && self.options.escape
    }

    /// Returns true if an access may be to `errno`.
    pub fn may_be_errno(&self, access: &MemoryAccess) -> bool {
        access.place != MemoryRegion::Frame && !self.not_errno(access)
    }

    // ---- two accesses ----------------------------------------------------------------------

    fn disjoint(&self, a: &MemoryAccess, b: &MemoryAccess, frame: Option<Op>) -> bool {
        match (a.place, b.place) {
            (MemoryRegion::Inaccessible, other) | (other, MemoryRegion::Inaccessible) => {
                return other != MemoryRegion::Inaccessible;
            }
            (MemoryRegion::Errno, MemoryRegion::Errno) => return false,
            (MemoryRegion::Errno, _) => return self.not_errno(b),
            (_, MemoryRegion::Errno) => return self.not_errno(a),
            _ => {}
        }
        if self.metadata_disjoint(a.meta, b.meta, a, b, frame) {
            return true;
        }
        let (Some(left), Some(right)) = (self.objects(a), self.objects(b)) else {
            return true;
        };
        let freed = [a, b].iter().any(|x| x.kind == AccessKind::Free);
        if self.sets_disjoint(&left, &right, freed)
            || self.is_all_constant(&left)
            || self.is_all_constant(&right)
        {
            return true;
        }
        match (a.place, b.place) {
            (MemoryRegion::At(p), MemoryRegion::At(q)) => self.pointers_disjoint(a, p, b, q, frame),
            _ => false,
        }
    }

    fn sets_disjoint(&self, left: &Targets, right: &Targets, freed: bool) -> bool {
        let meet = |x: ObjectId, y: ObjectId| self.objects_may_alias(x, y, freed);
        left.iter()
            .all(|x| right.iter().all(|y| !meet(x.object, y.object)))
    }

    /// Returns true if all objects are constant: no write can touch them.
    fn is_all_constant(&self, set: &Targets) -> bool {
        self.options.objects
            && set.iter().all(|t| match self.points_to.object(t.object) {
                Object::Global(global) => is_constant_memory(self.unit, global),
                Object::Code(_) => true,
                _ => false,
            })
    }

    /// Returns true if an access cannot be to `errno`, an `int` whose address comes only from a call.
    fn not_errno(&self, access: &MemoryAccess) -> bool {
        let MemoryRegion::At(ptr) = access.place else {
            return !matches!(access.place, MemoryRegion::Reachable);
        };
        let set = self.points_to.targets(self.body, ptr);
        if !set.iter().any(|t| t.object == UNKNOWN) && self.options.objects {
            return true;
        }
        let place = self.forms.of_pointer(self.unit, self.body, ptr);
        let from_call = match place.root {
            BaseValue::Value(root) => self.body.def_op(root).is_some_and(|op| {
                !matches!(self.body.kind(op), OpKind::Load(_) | OpKind::Alloca(_))
            }),
            BaseValue::Global(_) => false,
        };
        self.options.errno && !(from_call && access.size.is_none_or(|bytes| bytes == 4))
    }

    /// Returns true if TBAA tags or alias scopes separate two accesses.
    fn metadata_disjoint(
        &self,
        a: Option<MetaId>,
        b: Option<MetaId>,
        x: &MemoryAccess,
        y: &MemoryAccess,
        frame: Option<Op>,
    ) -> bool {
        let (Some(a), Some(b)) = (a, b) else {
            return false;
        };
        let same_iteration = !self.scopes_vary || frame == self.nest.common_loop(x.op, y.op);
        self.tags_disjoint(a, b, same_iteration)
            && (x.kind != AccessKind::Free && y.kind != AccessKind::Free)
    }

    /// Returns true if the metadata of two accesses separates them. Scopes declared inside loops apply to
    /// one iteration only.
    pub(crate) fn tags_disjoint(&self, a: MetaId, b: MetaId, same_iteration: bool) -> bool {
        let (a, b) = (self.unit.meta(a), self.unit.meta(b));
        if self.options.tbaa
            && let (Some(x), Some(y)) = (&a.tbaa, &b.tbaa)
            && (x.constant || y.constant || !tbaa::may_alias(self.unit, x, y))
        {
            return true;
        }
        let usable = |scope: ScopeId| same_iteration || self.unit.scopes[scope].host.is_none();
        self.options.scopes
            && !(tbaa::may_alias_in_scopes(self.unit, &a.alias_scopes, &b.noalias, usable)
                && tbaa::may_alias_in_scopes(self.unit, &b.alias_scopes, &a.noalias, usable))
    }

    // ---- two pointers ----------------------------------------------------------------------

    fn pointers_disjoint(
        &self,
        a: &MemoryAccess,
        p: Value,
        b: &MemoryAccess,
        q: Value,
        frame: Option<Op>,
    ) -> bool {
        let (x, y) = (
            self.forms.of_pointer(self.unit, self.body, p),
            self.forms.of_pointer(self.unit, self.body, q),
        );
        let assumed = |r: &BaseValue, s: &BaseValue| {
            let pairs = &self.options.assume_disjoint;
            pairs
                .iter()
                .any(|(m, n)| (m, n) == (r, s) || (m, n) == (s, r))
        };
        if assumed(&x.root, &y.root) {
            return true;
        }
        if x.root == y.root {
            let fixed = match x.root {
                BaseValue::Value(root) => self.nest.is_invariant_in(self.body, root, frame),
                BaseValue::Global(_) => true,
            };
            return fixed
                && self.options.offsets
                && self.offsets_disjoint(a, &x.offset, b, &y.offset, frame);
        }
        match (x.root, y.root) {
            (BaseValue::Value(r), BaseValue::Value(s)) => {
                self.options.objects && self.roots_disjoint(r, s, frame)
            }
            _ => false,
        }
    }

    /// Returns true if bytes at two offsets from a common base do not overlap.
    fn offsets_disjoint(
        &self,
        a: &MemoryAccess,
        x: &Poly,
        b: &MemoryAccess,
        y: &Poly,
        frame: Option<Op>,
    ) -> bool {
        let (Some(size_a), Some(size_b)) = (a.size, b.size) else {
            return false;
        };
        let (Some(size_a), Some(size_b)) = (i64::try_from(size_a).ok(), i64::try_from(size_b).ok())
        else {
            return false;
        };
        let (Some(x), Some(y)) = (
            x.plus(&Poly::constant(a.offset)),
            y.plus(&Poly::constant(b.offset)),
        ) else {
            return false;
        };
        let distance = distance::AddressDistance::between(self, (a.op, &x), (b.op, &y), frame);
        is_planted(Mutant::UnknownOffsetsDisjoint)
            || distance.excludes(size_a, size_b)
            || self.options.ranges && distance.excludes_by_ranges(self, size_a, size_b)
    }

    /// Returns true if two different pointers point into distinct objects throughout one iteration of
    /// `frame`. By induction over loop iterations, a pair is assumed distinct while its origins are
    /// checked.
    fn roots_disjoint(&self, r: Value, s: Value, frame: Option<Op>) -> bool {
        const MAX_PAIRS: usize = 32;
        let mut seen: HashSet<(Value, Value)> = HashSet::new();
        let mut work = vec![(r, s)];
        let fixed = |v| self.nest.is_invariant_in(self.body, v, frame);
        if !fixed(r) || !fixed(s) {
            return false;
        }
        while let Some((p, q)) = work.pop() {
            let (p, q) = (self.base_of(p), self.base_of(q));
            if p == q || seen.len() >= MAX_PAIRS {
                return false;
            }
            let pair = (p.min(q), p.max(q));
            let (left, right) = (
                Targets::from_slice(self.points_to.targets(self.body, p)),
                Targets::from_slice(self.points_to.targets(self.body, q)),
            );
            if self.sets_disjoint(&left, &right, false) || !seen.insert(pair) {
                continue;
            }
            match self.distinctness_conditions(pair.0, pair.1) {
                Some(pairs) => work.extend(pairs),
                None => return false,
            }
        }
        true
    }

    fn base_of(&self, pointer: Value) -> Value {
        match self.forms.of_pointer(self.unit, self.body, pointer).root {
            BaseValue::Value(root) => root,
            BaseValue::Global(_) => pointer,
        }
    }

    /// Returns the pairs whose distinctness implies the distinctness of `p` and `q`. Covered are values
    /// carried by one loop, results of one op, and selects.
    fn distinctness_conditions(&self, p: Value, q: Value) -> Option<Vec<(Value, Value)>> {
        let body = self.body;
        match (body.values[p].def, body.values[q].def) {
            (Definition::Param(region, i), Definition::Param(other, j)) if region == other => {
                let owner = body.owner(region)?;
                let terminator = body.last(region)?;
                let (i, j) = (i as usize, j as usize);
                let (start, next) = match body.kind(owner) {
                    OpKind::For { .. } => (i.min(j).checked_sub(1).map(|_| 0)?, 1),
                    OpKind::Loop { .. } => (0, 0),
                    _ => return None,
                };
                let initial = |k: usize| body.operand(owner, k + start);
                let carried = |k: usize| match next {
                    1 => body.operand(terminator, k - 1),
                    _ => body.operand(terminator, k + 1),
                };
                Some(vec![(initial(i), initial(j)), (carried(i), carried(j))])
            }
            (Definition::Result(op, i), Definition::Result(other, j)) if op == other => {
                self.result_conditions(op, i as usize, j as usize)
            }
            _ => self
                .select_conditions(p, q)
                .or_else(|| self.select_conditions(q, p)),
        }
    }

    fn result_conditions(&self, op: Op, i: usize, j: usize) -> Option<Vec<(Value, Value)>> {
        let body = self.body;
        let ends = || body.op_regions(op).iter().filter_map(|r| body.last(*r));
        match body.kind(op) {
            OpKind::If | OpKind::Switch(_) => {
                let yields = ends().filter(|end| matches!(body.kind(*end), OpKind::Yield));
                Some(
                    yields
                        .map(|e| (body.operand(e, i), body.operand(e, j)))
                        .collect(),
                )
            }
            OpKind::For { .. } => {
                let mut origins = vec![(body.operand(op, i + 1), body.operand(op, j + 1))];
                let yields = ends().filter(|end| matches!(body.kind(*end), OpKind::Yield));
                origins.extend(yields.map(|e| (body.operand(e, i), body.operand(e, j))));
                Some(origins)
            }
            OpKind::Loop { .. } => {
                let end = ends().find(|end| matches!(body.kind(*end), OpKind::Repeat))?;
                let skip = 1 + body.operand_count(op);
                Some(vec![(
                    body.operand(end, i + skip),
                    body.operand(end, j + skip),
                )])
            }
            _ => None,
        }
    }

    /// Returns the origin pairs if `p` is a select: both choices must be distinct from `q`.
    fn select_conditions(&self, p: Value, q: Value) -> Option<Vec<(Value, Value)>> {
        let op = self.body.def_op(p)?;
        match self.body.kind(op) {
            OpKind::Select => Some(vec![
                (self.body.operand(op, 1), q),
                (self.body.operand(op, 2), q),
            ]),
            _ => None,
        }
    }
}
