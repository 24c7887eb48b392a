//! A body as a flat list of instructions: regions are ranges, control flow is jumps.
//!
//! Registers are numbered per body; one with [`CONST`] set is an entry of the table of constants.

use crate::shape::{Num, Shape};
use crate::value::Value;
use gradus_ir::known::Known;
use gradus_ir::{
    BinaryOp, CastOp, Flags, FloatPredicate, FuncId, IntPredicate, Op, ReduceOp, RmwOp, Schedule,
};

/// A register, or a constant.
pub(crate) type Reg = u32;

/// Marks a constant.
pub(crate) const CONST: u32 = 1 << 31;

/// A place in the list of instructions.
pub(crate) type Place = u32;

/// One body.
#[derive(Debug)]
pub(crate) struct Code {
    pub func: FuncId,
    pub instrs: Vec<Instr>,
    /// The op behind each instruction.
    pub ops: Vec<Op>,
    pub consts: Vec<Value>,
    pub registers: u32,
    pub params: Vec<Reg>,
    /// Parameters that are copies of what is pointed to: index, size and alignment.
    pub copied: Vec<(usize, u64, u64)>,
    pub variadic: bool,
}

/// Who is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    Func(FuncId),
    Known(Known, FuncId),
    Value(Reg),
}

/// A call.
#[derive(Debug)]
pub(crate) struct CallSite {
    pub callee: Callee,
    pub args: Box<[Reg]>,
    pub arg_shapes: Box<[Option<Shape>]>,
    /// Where the result goes.
    pub result: Option<(Reg, Shape)>,
    pub flags: Flags,
    /// Where an exception goes on, for an invoke.
    pub unwind: Option<Place>,
}

/// An address: base + constant + Σ index·stride.
#[derive(Debug)]
pub(crate) struct AddrInfo {
    pub base: Reg,
    pub offset: u64,
    /// Index, its width in bits, and the stride in bytes.
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
    /// Counts iterations.
    pub counter: Reg,
    pub total: Reg,
}

/// What a landing pad takes: the types caught, null for everything.
#[derive(Debug)]
pub(crate) struct Clauses {
    pub catches: Box<[Value]>,
    /// Whether it is entered for every exception.
    pub cleanup: bool,
}

/// One instruction.
#[derive(Debug)]
pub(crate) enum Instr {
    Move {
        dst: Reg,
        src: Reg,
    },
    /// All sources are read before anything is written.
    Moves(Box<[(Reg, Reg)]>),
    Jump(Place),
    JumpUnless {
        condition: Reg,
        to: Place,
    },
    Switch {
        value: Reg,
        cases: Box<[(u128, Place)]>,
        default: Place,
    },
    /// Leaves a counted loop.
    ForTest {
        index: Reg,
        count: Reg,
        exit: Place,
    },
    ForNext {
        index: Reg,
        head: Place,
    },
    Return(Option<Reg>),
    Unreachable,
    Resume(Reg),
    /// What cannot be run.
    Fail(Box<str>),

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
    /// Loads and stores of numbers of whole bytes, at most eight.
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

    /// What strands do that matters to nothing but races.
    Strands(Strands),
    ParStart(Box<ParForInfo>),
    ParIndex {
        info: Box<ParForInfo>,
        exit: Place,
    },
    Combine {
        op: ReduceOp,
        num: Num,
        lanes: Option<usize>,
        total: Reg,
        value: Reg,
    },
    Spmd {
        /// Whether an extent of 0 leaves the number of ranks to the machine.
        team: bool,
        extents: Box<[Reg]>,
        params: Box<[Reg]>,
        end: Place,
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
        exit: Place,
    },
    ShareNext {
        state: Reg,
        head: Place,
    },
    Single {
        skip: Place,
    },
    /// The rank's results of a `single` are for all.
    Publish(Box<[Reg]>),
    /// The results of the rank that ran the latest `single`.
    Receive(Box<[Reg]>),
}

/// Tasks and locks: code runs through them as if they were not there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strands {
    Scope,
    ScopeEnd,
    /// Where its conditions are given: whether it runs beside what follows, and whether the tasks inside
    /// run where they stand.
    Task {
        beside: Option<Reg>,
        serial: Option<Reg>,
    },
    TaskEnd,
    Sync,
    /// What stands for the lock's name.
    Lock(u64),
    Unlock,
}

/// A conversion.
#[derive(Debug)]
pub(crate) struct CastInfo {
    pub op: CastOp,
    pub from: Num,
    pub to: Num,
    pub flags: Flags,
    /// Lanes before and after; they differ in bit casts only.
    pub lanes: (Option<usize>, Option<usize>),
    pub a: Reg,
    pub dst: Reg,
}
