//! The language in the middle: structured SSA bodies, their text form and their rules.
//!
//! A [`Unit`] holds what a compilation knows: types, constants, globals, functions, source
//! locations and the facts that the host module stated. A [`Body`] is one function's code: an
//! arena of ops, values and regions. A region is one straight list of ops that ends in a
//! terminator; control flow is ops that own regions ([`OpKind::If`], [`OpKind::Loop`] …), never
//! edges between blocks.
//!
//! This crate knows no LLVM, no calculus, no threads and no GPU.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attrs;
mod body;
mod build;
#[cfg(test)]
mod build_tests;
mod consts;
mod diag;
mod entity;
pub mod integers;
mod internal_error;
pub mod known;
mod layout;
mod meta;
pub mod mutant;
mod op_table;
mod ops;
mod result_types;
mod text;
mod types;
mod unit;
mod verify;

pub use attrs::{Attr, AttrSet, AttrValue, POINTEE};
pub use body::{Body, Definition, OpData, Operand, RegionData, Use, ValueData, Walk};
pub use build::Builder;
pub use consts::{Const, ConstKind, ConstTable, FIRST_OBJECT};
pub use diag::{Code, Diagnostic, Label, Severity, SourceSpan};
pub use entity::{Arena, Entity};
pub use internal_error::internal_error;
pub use layout::{Address, Layout};
pub use meta::{AliasScope, CopiedMember, Meta, TbaaTag, TbaaType};
pub use op_table::{Count, EffectClass, OpRow};
pub use ops::{
    Access, AllocaInfo, AllocaPlace, Atomicity, BarrierScope, BinaryOp, CallInfo, CastOp, Flags,
    FloatPredicate, IntPredicate, LandingPad, MOST_THREADS, OpKind, ReduceOp, RmwOp, Schedule,
    SpmdKind, TailKind,
};
pub use text::{OpPrinter, parse, print, print_function};
pub use types::{FloatKind, Type, TypeTable};
pub use unit::{
    Function, GivenAway, Global, Initializer, Linkage, Location, Relocation, Symbol, Unit,
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
    /// What the host stated about one memory access or op.
    MetaId,
    /// An alias scope of a [`Unit`].
    ScopeId,
    /// A type of type-based alias analysis of a [`Unit`].
    TbaaTypeId,
}
