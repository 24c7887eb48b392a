//! GIR: structured SSA bodies, text form and verifier.
//!
//! A [`Unit`] holds all compilation state besides bodies: types, constants, globals, functions, source
//! locations and facts stated by the host module. A [`Body`] is the code of one function: an arena of ops,
//! values and regions. A region is one straight list of ops with a terminator at the end. Control flow is
//! expressed by ops with regions ([`OpKind::If`], [`OpKind::Loop`] …), never by edges between basic blocks.
//!
//! This crate is independent of LLVM, differentiation, threads and GPUs.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod addresses;
mod ancestors;
#[cfg(test)]
mod ancestors_tests;
mod attrs;
mod body;
mod body_constants;
mod build;
#[cfg(test)]
mod build_tests;
mod consts;
mod control_edges;
#[cfg(test)]
mod control_edges_tests;
mod diag;
mod effect_class;
mod entity;
pub mod externals;
mod flags;
pub mod integers;
mod internal_error;
mod keywords;
mod known_functions;
mod layout;
mod meta;
pub mod mutant;
mod near_name;
mod op_table;
mod ops;
mod result_types;
mod scalar_table;
mod stamps;
mod text;
mod type_sizes;
mod types;
mod unit;
mod verify;

pub use addresses::Address;
pub use attrs::{Attr, AttrSet, AttrValue, POINTEE_ATTR};
pub use body::{Body, BodyVersion, Definition, OpData, Operand, RegionData, Use, ValueData, Walk};
pub use build::Builder;
pub use consts::{Const, ConstKind, ConstTable, MIN_OBJECT_ADDRESS};
pub use control_edges::{ControlEdge, ControlEdges, Point, Transfer, ValueFlow};
pub use diag::{Code, Diagnostic, Label, Severity, SourceSpan};
pub use effect_class::EffectClass;
pub use entity::{Arena, Entity};
pub use flags::Flags;
pub use internal_error::internal_error;
pub use layout::Layout;
pub use meta::{AliasScope, Meta, TbaaStructMember, TbaaTag, TbaaType};
pub use near_name::nearest_name;
pub use op_table::{Count, OpRow};
pub use ops::{
    Access, AllocaInfo, AllocaStorage, Atomicity, BarrierScope, CallInfo, FloatPredicate,
    IntPredicate, LandingPad, MAX_BLOCK_THREADS, OpKind, ReduceOp, RmwOp, Schedule, SpmdKind,
    TailKind,
};
pub use scalar_table::{BinaryOp, BinaryRow, CastOp, CastRow, NumberFormat};
pub use text::{OpPrinter, parse, print, print_function};
pub use types::{FloatKind, Type, TypeTable};
pub use unit::{
    AddressEscapes, FactsVersion, Function, Global, Initializer, Linkage, Location, OwnedBlock,
    OwnedBlockSize, Relocation, Symbol, Unit,
};
pub use verify::{Rule, verify, verify_function};

entity::entities! {
    /// An operation of a [`Body`].
    Op,
    /// A value of a [`Body`]: an op's result, a region's parameter or a constant.
    Value,
    /// A region of a [`Body`]: one straight list of ops.
    Region,
    /// A type, interned in a [`Unit`].
    TypeId,
    /// A constant, interned in a [`Unit`].
    ConstId,
    /// A function of a [`Unit`].
    FuncId,
    /// A global variable of a [`Unit`].
    GlobalId,
    /// A source location of a [`Unit`].
    LocId,
    /// A set of attributes of a [`Unit`].
    AttrsId,
    /// The metadata of one memory access or op, as stated by the host.
    MetaId,
    /// An alias scope of a [`Unit`].
    ScopeId,
    /// A TBAA type (type-based alias analysis) of a [`Unit`].
    TbaaTypeId,
}
