//! Op builder: creates ops at an insertion point, with result types implied by the operands.

use crate::{
    Access, AllocaInfo, AllocaStorage, BinaryOp, Body, CallInfo, CastOp, ConstId, ConstKind, Flags,
    FloatPredicate, FuncId, IntPredicate, LocId, MetaId, Op, OpKind, ReduceOp, Region, Type,
    TypeId, Unit, Value,
};

/// Creates ops at the end of a region or before an op. Each new op has location `loc`; floating-point ops
/// also have the flags `fast_math`.
#[derive(Debug)]
pub struct Builder<'a> {
    /// The unit that interns types and constants.
    pub unit: &'a mut Unit,
    /// The body under construction.
    pub body: &'a mut Body,
    /// The location of new ops.
    pub loc: Option<LocId>,
    /// The flags of new floating-point ops.
    pub fast_math: Flags,
    region: Region,
    before: Option<Op>,
}

impl<'a> Builder<'a> {
    /// Creates a builder at the end of the root region.
    pub fn new(unit: &'a mut Unit, body: &'a mut Body) -> Self {
        let region = body.root();
        Builder {
            unit,
            body,
            loc: None,
            fast_math: Flags::NONE,
            region,
            before: None,
        }
    }
    /// Sets the insertion point to the end of a region. Returns the old insertion point, for
    /// [`Builder::restore_insertion_point`].
    pub fn set_insertion_end(&mut self, region: Region) -> (Region, Option<Op>) {
        let old = (self.region, self.before);
        self.region = region;
        self.before = None;
        old
    }
    /// Sets the insertion point before an op (no effect if the op is detached). Returns the old insertion
    /// point, for [`Builder::restore_insertion_point`].
    pub fn set_insertion_before(&mut self, op: Op) -> (Region, Option<Op>) {
        let old = (self.region, self.before);
        if let Some(region) = self.body.parent(op) {
            self.region = region;
            self.before = Some(op);
        }
        old
    }
    /// Restores an insertion point.
    pub fn restore_insertion_point(&mut self, place: (Region, Option<Op>)) {
        (self.region, self.before) = place;
    }
    /// Returns the region of the insertion point.
    pub fn region(&self) -> Region {
        self.region
    }

    /// Creates an op with the given operands, result types and number of (empty) regions.
    pub fn op(
        &mut self,
        kind: OpKind,
        operands: &[Value],
        results: &[TypeId],
        regions: usize,
    ) -> Op {
        let op = self.body.new_op(kind, operands, results, regions);
        self.body.ops[op].loc = self.loc;
        match self.before {
            Some(at) => self.body.insert_before(at, op),
            None => self.body.append(self.region, op),
        }
        op
    }
    /// Creates an op with one result of type `result`.
    pub fn value(&mut self, kind: OpKind, operands: &[Value], result: TypeId) -> Value {
        let op = self.op(kind, operands, &[result], 0);
        self.body.result(op)
    }
    fn fast_value(&mut self, kind: OpKind, operands: &[Value], result: TypeId) -> Value {
        let value = self.value(kind, operands, result);
        self.set_flags(value, self.fast_math);
        value
    }
    /// Sets the flags of the op that defines `value`.
    pub fn set_flags(&mut self, value: Value, flags: Flags) {
        if let Some(op) = self.body.def_op(value) {
            self.body.ops[op].flags = flags;
        }
    }
    /// Sets the metadata of an op.
    pub fn set_meta(&mut self, op: Op, meta: Option<MetaId>) {
        self.body.ops[op].meta = meta;
    }

    // ---- constants -------------------------------------------------------------------------

    /// Returns the value of an interned constant.
    pub fn constant(&mut self, id: ConstId) -> Value {
        self.body.constant(self.unit, id)
    }
    /// Returns an integer constant of type `ty`; a splat for a vector type.
    pub fn int(&mut self, ty: TypeId, n: i128) -> Value {
        let scalar = self.unit.types.scalar(ty);
        let id = self.unit.int_const(scalar, n);
        let id = self.splat_const(ty, id);
        self.constant(id)
    }
    /// Returns a 64-bit integer constant.
    pub fn i64(&mut self, n: i64) -> Value {
        let ty = self.unit.types.int(64);
        self.int(ty, i128::from(n))
    }
    /// Returns an `i1` constant.
    pub fn bool(&mut self, b: bool) -> Value {
        let ty = self.unit.types.int(1);
        self.int(ty, i128::from(b))
    }
    /// Returns a floating-point constant of type `ty`; a splat for a vector type.
    pub fn float(&mut self, ty: TypeId, x: f64) -> Value {
        let scalar = self.unit.types.scalar(ty);
        let id = self.unit.float_const(scalar, x);
        let id = self.splat_const(ty, id);
        self.constant(id)
    }
    fn splat_const(&mut self, ty: TypeId, elem: ConstId) -> ConstId {
        match *self.unit.types.get(ty) {
            Type::Vector { len, .. } => self
                .unit
                .consts
                .intern(ty, ConstKind::Aggregate(vec![elem; len as usize])),
            _ => elem,
        }
    }
    /// Returns the all-zero constant of any type.
    pub fn zero(&mut self, ty: TypeId) -> Value {
        match self.unit.types.get(ty) {
            Type::Int(_) => self.int(ty, 0),
            Type::Float(_) => self.float(ty, 0.0),
            _ => {
                let id = self.unit.consts.intern(ty, ConstKind::Zero);
                self.constant(id)
            }
        }
    }
    /// Returns the poison constant of any type.
    pub fn poison(&mut self, ty: TypeId) -> Value {
        let id = self.unit.consts.intern(ty, ConstKind::Poison);
        self.constant(id)
    }
    /// Returns the address of a function.
    pub fn func(&mut self, func: FuncId) -> Value {
        let ty = self.unit.types.ptr();
        let id = self.unit.consts.intern(ty, ConstKind::Func(func));
        self.constant(id)
    }

    // ---- scalar ops ------------------------------------------------------------------------

    /// `a op b`; floating-point ops receive the builder's fast-math flags.
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.body.ty(a);
        match op.is_float() {
            true => self.fast_value(OpKind::Binary(op), &[a, b], ty),
            false => self.value(OpKind::Binary(op), &[a, b], ty),
        }
    }
    /// `a + b` of floating-point numbers.
    pub fn fadd(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::FAdd, a, b)
    }
    /// `a − b` of floating-point numbers.
    pub fn fsub(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::FSub, a, b)
    }
    /// `a · b` of floating-point numbers.
    pub fn fmul(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::FMul, a, b)
    }
    /// `a / b` of floating-point numbers.
    pub fn fdiv(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::FDiv, a, b)
    }
    /// `−a` of a floating-point number.
    pub fn fneg(&mut self, a: Value) -> Value {
        let ty = self.body.ty(a);
        self.fast_value(OpKind::FNeg, &[a], ty)
    }
    /// `a + b` of integers.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Add, a, b)
    }
    /// `a − b` of integers.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Sub, a, b)
    }
    /// `a · b` of integers.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Mul, a, b)
    }
    /// A comparison of integers or pointers.
    pub fn icmp(&mut self, predicate: IntPredicate, a: Value, b: Value) -> Value {
        let ty = self.bool_type_like(a);
        self.value(OpKind::ICmp(predicate), &[a, b], ty)
    }
    /// A comparison of floating-point numbers.
    pub fn fcmp(&mut self, predicate: FloatPredicate, a: Value, b: Value) -> Value {
        let ty = self.bool_type_like(a);
        self.fast_value(OpKind::FCmp(predicate), &[a, b], ty)
    }
    fn bool_type_like(&mut self, like: Value) -> TypeId {
        let bit = self.unit.types.int(1);
        let ty = self.body.ty(like);
        self.unit.types.with_scalar(ty, bit)
    }
    /// `c ? a : b`.
    pub fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        let ty = self.body.ty(a);
        self.value(OpKind::Select, &[c, a, b], ty)
    }
    /// A conversion to `ty`; returns `a` if `a` already has type `ty`.
    pub fn cast(&mut self, op: CastOp, a: Value, ty: TypeId) -> Value {
        if self.body.ty(a) == ty {
            return a;
        }
        self.value(OpKind::Cast(op), &[a], ty)
    }
    /// Member `path` of an aggregate.
    pub fn extract(&mut self, aggregate: Value, path: &[u32]) -> Value {
        let mut ty = self.body.ty(aggregate);
        for &index in path {
            ty = self.unit.types.field(ty, index).unwrap_or(ty);
        }
        self.value(OpKind::ExtractValue(path.into()), &[aggregate], ty)
    }
    /// An aggregate with member `path` replaced.
    pub fn insert(&mut self, aggregate: Value, member: Value, path: &[u32]) -> Value {
        let ty = self.body.ty(aggregate);
        self.value(OpKind::InsertValue(path.into()), &[aggregate, member], ty)
    }

    // ---- memory ----------------------------------------------------------------------------

    /// An alloca of one `ty` in the function's frame.
    pub fn alloca(&mut self, ty: TypeId) -> Value {
        let align_bytes = self.unit.layout.align_bytes(self.unit, ty) as u32;
        let one = self.i64(1);
        let ptr = self.unit.types.ptr();
        let info = AllocaInfo {
            ty,
            align_bytes,
            storage: AllocaStorage::Frame,
            inalloca: false,
        };
        self.value(OpKind::Alloca(info), &[one], ptr)
    }
    /// A plain load with the natural alignment of the type.
    pub fn load(&mut self, ty: TypeId, ptr: Value) -> Value {
        let align_bytes = self.unit.layout.align_bytes(self.unit, ty) as u32;
        self.value(OpKind::Load(Access::plain(align_bytes)), &[ptr], ty)
    }
    /// A plain store with the natural alignment of the type.
    pub fn store(&mut self, value: Value, ptr: Value) -> Op {
        let ty = self.body.ty(value);
        let align_bytes = self.unit.layout.align_bytes(self.unit, ty) as u32;
        self.op(
            OpKind::Store(Access::plain(align_bytes)),
            &[value, ptr],
            &[],
            0,
        )
    }
    /// The address of element `index` in an array of `source` at `base`; flags `inbounds` and `nusw`.
    pub fn addr(&mut self, source: TypeId, base: Value, index: Value) -> Value {
        let ty = self.body.ty(base);
        let value = self.value(OpKind::Addr { source }, &[base, index], ty);
        self.set_flags(value, Flags::INBOUNDS.with(Flags::NUSW));
        value
    }
    /// The address `bytes` bytes after `base`.
    pub fn byte_addr(&mut self, base: Value, bytes: Value) -> Value {
        let byte = self.unit.types.int(8);
        self.addr(byte, base, bytes)
    }

    // ---- calls -----------------------------------------------------------------------------

    /// A direct call of a function of the unit.
    pub fn call(&mut self, func: FuncId, args: &[Value]) -> Op {
        let signature = self.unit.functions[func].ty;
        let convention = self.unit.functions[func].convention;
        let callee = self.func(func);
        self.call_with(
            CallInfo {
                convention,
                ..CallInfo::plain(signature)
            },
            callee,
            args,
        )
    }
    /// A call of any function value.
    pub fn call_with(&mut self, info: CallInfo, callee: Value, args: &[Value]) -> Op {
        let result = self.unit.result_type(info.signature);
        let results: Vec<TypeId> = result
            .into_iter()
            .filter(|ty| !self.unit.types.is_void(*ty))
            .collect();
        let mut operands = vec![callee];
        operands.extend_from_slice(args);
        self.op(OpKind::Call(Box::new(info)), &operands, &results, 0)
    }

    // ---- control flow ----------------------------------------------------------------------

    /// An `if` with two empty regions; returns the op and both regions.
    pub fn if_(&mut self, condition: Value, results: &[TypeId]) -> (Op, Region, Region) {
        let op = self.op(OpKind::If, &[condition], results, 2);
        let regions = self.body.op_regions(op);
        (op, regions[0], regions[1])
    }
    /// A `for` with an empty region. The region's parameters are the index and the carried values.
    pub fn for_(&mut self, trips: Value, initial: &[Value]) -> (Op, Region) {
        let types: Vec<TypeId> = initial.iter().map(|v| self.body.ty(*v)).collect();
        let mut operands = vec![trips];
        operands.extend_from_slice(initial);
        let op = self.op(OpKind::For { trip_max: None }, &operands, &types, 1);
        let region = self.body.op_regions(op)[0];
        let index = self.body.ty(trips);
        self.body.add_param(region, index);
        for ty in types {
            self.body.add_param(region, ty);
        }
        (op, region)
    }
    /// A one-dimensional `par.for` with an empty region; the region's parameter is the index. Each reduction
    /// is a pair of operator and initial value. The loop's results are the reduced values.
    pub fn par_for(
        &mut self,
        trips: Value,
        reductions: &[(ReduceOp, Value)],
        grain: Option<u64>,
    ) -> (Op, Region) {
        let types: Vec<TypeId> = reductions.iter().map(|r| self.body.ty(r.1)).collect();
        let mut operands = vec![trips];
        operands.extend(reductions.iter().map(|r| r.1));
        let kind = OpKind::ParFor {
            dims: 1,
            reductions: reductions.iter().map(|r| r.0).collect(),
            grain,
        };
        let op = self.op(kind, &operands, &types, 1);
        let region = self.body.op_regions(op)[0];
        let index = self.body.ty(trips);
        self.body.add_param(region, index);
        (op, region)
    }
    /// A `loop` with an empty region. The region's parameters are the carried values.
    pub fn loop_(&mut self, initial: &[Value], results: &[TypeId]) -> (Op, Region) {
        let op = self.op(OpKind::Loop { trip_max: None }, initial, results, 1);
        let region = self.body.op_regions(op)[0];
        for &value in initial {
            let ty = self.body.ty(value);
            self.body.add_param(region, ty);
        }
        (op, region)
    }
    /// Terminates a region with the yielded values.
    pub fn yield_(&mut self, values: &[Value]) -> Op {
        self.op(OpKind::Yield, values, &[], 0)
    }
    /// Terminates a loop's region: continue condition, next carried values, loop results.
    pub fn repeat(&mut self, again: Value, carried: &[Value], results: &[Value]) -> Op {
        let mut operands = vec![again];
        operands.extend_from_slice(carried);
        operands.extend_from_slice(results);
        self.op(OpKind::Repeat, &operands, &[], 0)
    }
    /// Terminates the root region.
    pub fn return_(&mut self, value: Option<Value>) -> Op {
        self.op(OpKind::Return, value.as_slice(), &[], 0)
    }
}
