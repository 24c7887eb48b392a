//! Bytecode: a body as a flat list of instructions. Regions are ranges, control flow is jumps.
//!
//! Registers are numbered per body. A register with the bit [`CONST`] set is an index into the constant
//! table.

use crate::values::cast::Conversion;
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    BinaryOp, Flags, FloatPredicate, FuncId, IntPredicate, Op, Point, ReduceOp, Region, RmwOp,
    Schedule,
};

/// A register or a constant.
pub(crate) type Reg = u32;

/// Marks a register operand as a constant.
pub(crate) const CONST: u32 = 1 << 31;

/// An instruction index.
pub(crate) type InstrIndex = u32;

/// The bytecode of one body.
#[derive(Debug)]
pub(crate) struct Code {
    pub func: FuncId,
    /// The outermost region.
    pub root: Region,
    pub instrs: Vec<Instr>,
    /// The op of each instruction.
    pub ops: Vec<Op>,
    pub consts: Vec<Value>,
    pub registers: u32,
    pub params: Vec<Reg>,
    /// `byval` parameters: index, size and alignment in bytes.
    pub byval_params: Vec<(usize, u64, u64)>,
    pub variadic: bool,
}

/// The callee of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    Func(FuncId),
    Known(ExternalFn, FuncId),
    Value(Reg),
}

/// A call.
#[derive(Debug)]
pub(crate) struct CallSite {
    pub callee: Callee,
    pub args: Box<[Reg]>,
    pub arg_shapes: Box<[Option<Shape>]>,
    /// The result register and shape.
    pub result: Option<(Reg, Shape)>,
    pub flags: Flags,
    /// The landing pad, for an invoke.
    pub unwind: Option<InstrIndex>,
}

/// An address: base + offset + Σ index·stride.
#[derive(Debug)]
pub(crate) struct AddrInfo {
    pub base: Reg,
    pub offset: u64,
    /// Index register, index width in bits, stride in bytes.
    pub terms: Box<[(Reg, u32, i64)]>,
    pub lanes: Option<usize>,
    pub inbounds: bool,
    pub dst: Reg,
}

/// A `par.for`.
#[derive(Debug)]
pub(crate) struct ParForInfo {
    pub extents: Box<[Reg]>,
    pub indices: Box<[Reg]>,
    /// The iteration counter.
    pub counter: Reg,
    pub total: Reg,
}

/// The clauses of a landing pad: the caught types; null catches all exceptions.
#[derive(Debug)]
pub(crate) struct Clauses {
    pub catches: Box<[Value]>,
    /// True if the pad is a cleanup, entered for every exception.
    pub cleanup: bool,
}

/// One instruction.
#[derive(Debug)]
pub(crate) enum Instr {
    Move {
        dst: Reg,
        src: Reg,
    },
    /// A parallel assignment: all sources are read before any write.
    ParallelMoves(Box<[(Reg, Reg)]>),
    Jump(InstrIndex),
    JumpUnless {
        condition: Reg,
        to: InstrIndex,
    },
    Switch {
        value: Reg,
        cases: Box<[(u128, InstrIndex)]>,
        default: InstrIndex,
    },
    /// Exits a counted loop if `index >= count`.
    ForTest {
        index: Reg,
        count: Reg,
        exit: InstrIndex,
    },
    ForNext {
        index: Reg,
        head: InstrIndex,
    },
    Return(Option<Reg>),
    Unreachable,
    Resume(Reg),
    /// Raises a trap: the op is not executable.
    NotExecutable(Box<str>),

    Binary {
        op: BinaryOp,
        num: Num,
        lanes: Option<usize>,
        flags: Flags,
        a: Reg,
        b: Reg,
        dst: Reg,
    },
    FNeg {
        num: Num,
        lanes: Option<usize>,
        flags: Flags,
        a: Reg,
        dst: Reg,
    },
    Cast(Box<CastInfo>),
    ICmp {
        predicate: IntPredicate,
        bits: u32,
        lanes: Option<usize>,
        same_sign: bool,
        a: Reg,
        b: Reg,
        dst: Reg,
    },
    FCmp {
        predicate: FloatPredicate,
        num: Num,
        lanes: Option<usize>,
        flags: Flags,
        a: Reg,
        b: Reg,
        dst: Reg,
    },
    Select {
        c: Reg,
        a: Reg,
        b: Reg,
        dst: Reg,
        lanes: Option<usize>,
        vector: bool,
    },
    Freeze {
        a: Reg,
        dst: Reg,
        shape: Box<Shape>,
    },
    ExtractElement {
        vector: Reg,
        index: Reg,
        dst: Reg,
    },
    InsertElement {
        vector: Reg,
        value: Reg,
        index: Reg,
        len: usize,
        dst: Reg,
    },
    Shuffle {
        a: Reg,
        b: Reg,
        len: usize,
        mask: Box<[i32]>,
        dst: Reg,
    },
    ExtractValue {
        aggregate: Reg,
        path: Box<[u32]>,
        dst: Reg,
    },
    InsertValue {
        aggregate: Reg,
        member: Reg,
        path: Box<[u32]>,
        shape: Box<Shape>,
        dst: Reg,
    },

    Alloca {
        stride: u64,
        align: u64,
        count: Reg,
        shared: bool,
        dst: Reg,
    },
    Load {
        shape: Box<Shape>,
        align: u64,
        atomic: bool,
        ptr: Reg,
        dst: Reg,
    },
    Store {
        shape: Box<Shape>,
        align: u64,
        atomic: bool,
        value: Reg,
        ptr: Reg,
    },
    /// Loads and stores of numbers of at most eight bytes.
    LoadBits {
        bytes: u32,
        align: u64,
        atomic: bool,
        mask: u64,
        ptr: Reg,
        dst: Reg,
    },
    StoreBits {
        bytes: u32,
        align: u64,
        atomic: bool,
        value: Reg,
        ptr: Reg,
    },
    Addr(Box<AddrInfo>),
    AtomicRmw {
        op: RmwOp,
        num: Num,
        align: u64,
        ptr: Reg,
        value: Reg,
        dst: Reg,
    },
    CmpXchg {
        num: Num,
        align: u64,
        ptr: Reg,
        expected: Reg,
        new: Reg,
        dst: Reg,
    },

    Call(Box<CallSite>),
    LandingPad {
        clauses: Box<Clauses>,
        dst: Reg,
    },

    /// Checks the transition to a point against the control edges; in traced runs only.
    EdgePoint(Box<EdgePoint>),
    /// Task and lock events, relevant for race detection only.
    Strands(StrandEvent),
    ParStart(Box<ParForInfo>),
    ParIndex {
        info: Box<ParForInfo>,
        exit: InstrIndex,
    },
    Combine {
        op: ReduceOp,
        num: Num,
        lanes: Option<usize>,
        total: Reg,
        value: Reg,
    },
    Spmd {
        /// True if an extent of 0 lets the machine choose the number of ranks.
        team: bool,
        extents: Box<[Reg]>,
        params: Box<[Reg]>,
        end: InstrIndex,
    },
    RankEnd,
    Barrier {
        grid: bool,
    },
    ShareStart {
        schedule: Schedule,
        count: Reg,
        chunk: Option<Reg>,
        state: Reg,
    },
    ShareTest {
        state: Reg,
        index: Reg,
        exit: InstrIndex,
    },
    ShareNext {
        state: Reg,
        head: InstrIndex,
    },
    Single {
        skip: InstrIndex,
    },
    /// Broadcasts the rank's results of a `single` to all ranks.
    Publish(Box<[Reg]>),
    /// Receives the results of the rank that ran the latest `single`.
    Receive(Box<[Reg]>),
}

/// Task and lock events. Execution is serial; the events only drive race detection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StrandEvent {
    Scope,
    ScopeEnd,
    /// A task: `beside` is the condition for running concurrently with the continuation, `serial` the
    /// condition for running inner tasks undeferred.
    Task {
        condition: Option<Reg>,
        serial: Option<Reg>,
    },
    TaskEnd,
    Sync,
    /// The hash of the lock's name.
    Lock(u64),
    Unlock,
}

/// A conversion with registers.
#[derive(Debug)]
pub(crate) struct CastInfo {
    pub conversion: Conversion,
    pub a: Reg,
    pub dst: Reg,
}

/// A point at which control enters or leaves a region.
#[derive(Debug)]
pub(crate) struct EdgePoint {
    pub point: Point,
    /// The region whose ops run before the point or behind the point.
    pub region: Region,
    /// The edges from the point.
    pub edges: Vec<EdgeValues>,
    pub totals: Vec<RunningTotal>,
    /// The values that the point broadcasts to other ranks.
    pub broadcast: Vec<Reg>,
}

/// The values of a control edge.
#[derive(Debug)]
pub(crate) struct EdgeValues {
    pub to: Point,
    /// Targets and sources.
    pub copies: Vec<(Reg, Reg)>,
    /// The results that receive values of another rank.
    pub received: Vec<Reg>,
}

/// A reduction's total that a point changes.
#[derive(Debug)]
pub(crate) struct RunningTotal {
    pub total: Reg,
    pub value: Reg,
    /// The operator; `None` if the total becomes the value.
    pub combine: Option<(ReduceOp, Num, Option<usize>)>,
}
