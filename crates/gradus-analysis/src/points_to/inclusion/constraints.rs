//! Constraints of the inclusion-based analysis, as data.

use crate::points_to::inclusion::objects::ObjectId;
use crate::types::lattice::CellType;
use gradus_ir::{FuncId, Op, TbaaTag, TbaaTypeId, TypeId};
use std::collections::HashMap;

/// A node: a set of locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub u32);

/// What a node stands for.
///
/// A number that contains bits of an address is not an address, and may become one again: a tag in the upper bits, two
/// halves, a copy byte by byte. Such bits are locations of [`ObjectKey::Bits`].
///
/// [`ObjectKey::Bits`]: crate::points_to::inclusion::objects::ObjectKey::Bits
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// An integer that may hold a whole address, or a memory cell.
    #[default]
    Word,
    /// A pointer. Bits that arrive here have been assembled: the pointer is unknown code's, and their object escapes.
    Pointer,
    /// An integer below the size of an address, or a floating-point number: bits alone.
    Part,
}

/// Movement of a pointer by an unknown multiple of a stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    /// Constant part of the movement before the first element, in bytes.
    pub offset: i64,
    /// Constant part of the index, in bytes: -8 for index `i - 1` of an array of pointers.
    pub index: i64,
    /// Stride in bytes, at least 1.
    pub stride: u64,
    /// True if the multiple is known to be at least 0.
    pub forward: bool,
    /// True if the pointer is incremented in a loop and may end one element behind the array.
    pub passes_end: bool,
    /// The array member that the type of the address names, relative to the unmoved pointer: first byte and end. The
    /// end is absent if the array may be flexible.
    pub array: Option<(i64, Option<i64>)>,
    /// True in a Fortran procedure: the language bounds every index by its array.
    pub in_fortran: bool,
}

/// A constraint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constraint {
    /// `node` contains the location.
    Address {
        node: NodeId,
        object: ObjectId,
        offset: i64,
    },
    /// `to` contains every location of `from`, moved by `bytes`.
    Copy {
        to: NodeId,
        from: NodeId,
        bytes: i64,
    },
    /// `to` contains every location of `from`, moved by `step`.
    Moved {
        to: NodeId,
        from: NodeId,
        step: Step,
    },
    /// `to` contains the contents of the cell `bytes` behind `ptr`.
    Load {
        to: NodeId,
        ptr: NodeId,
        bytes: i64,
        tag: Option<TbaaTag>,
    },
    /// The cell `bytes` behind `ptr` contains `from`.
    Store {
        ptr: NodeId,
        bytes: i64,
        from: NodeId,
        tag: Option<TbaaTag>,
    },
    /// `to` contains the bits in the word around the cell `bytes` behind `ptr`.
    LoadBits { to: NodeId, ptr: NodeId, bytes: i64 },
    /// The word around the cell `bytes` behind `ptr` contains the bits of `from`.
    StoreBits {
        ptr: NodeId,
        bytes: i64,
        from: NodeId,
    },
    /// The cells behind `to` contain the cells behind `from`.
    CopyBytes {
        to: NodeId,
        from: NodeId,
        size_bytes: Option<u64>,
    },
    /// `result` contains `base + (to - from)`.
    Difference {
        result: NodeId,
        base: NodeId,
        to: NodeId,
        from: NodeId,
    },
    /// A call through the pointer `callee`: index of [`Program::calls`].
    Call { callee: NodeId, call: usize },
    /// The memory behind `node` escapes to unknown code.
    Escape { node: NodeId },
    /// `node` contains `object` if `from` remains empty (an integer that becomes a pointer).
    Otherwise {
        node: NodeId,
        from: NodeId,
        object: ObjectId,
    },
}

impl Constraint {
    /// Returns the constraint of an access of any type.
    pub fn without_tag(mut self) -> Constraint {
        if let Constraint::Load { tag, .. } | Constraint::Store { tag, .. } = &mut self {
            *tag = None;
        }
        self
    }
}

/// An indirect call.
#[derive(Clone, Debug)]
pub(crate) struct IndirectCall {
    pub at: (FuncId, Op),
    pub signature: TypeId,
    /// Nodes of the leaves of each argument; `None` for a leaf without address.
    pub args: Vec<Vec<Option<NodeId>>>,
    /// Nodes of the leaves of the result.
    pub result: Vec<Option<NodeId>>,
}

/// A byte copy of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteCopy {
    pub at: (FuncId, Op),
    pub to: NodeId,
    pub from: NodeId,
    pub size_bytes: Option<u64>,
    /// The copy exists only if the call with this number calls this external function.
    pub guard: Option<(usize, FuncId)>,
}

/// Type evidence for the memory behind pointers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Types of single cells: pointer, distance in bytes, type.
    pub cells: Vec<(NodeId, i64, CellType)>,
    /// Structures in TBAA tags: pointer, distance in bytes of the structure's start, structure.
    pub tbaa_bases: Vec<(NodeId, i64, TbaaTypeId)>,
    /// Structures that address computations name.
    pub sources: Vec<(NodeId, TypeId)>,
}

/// The constraints of a call graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub constraints: Vec<Constraint>,
    /// The kind of each node.
    pub kinds: Vec<NodeKind>,
    pub calls: Vec<IndirectCall>,
    pub copies: Vec<ByteCopy>,
    pub evidence: Evidence,
    /// Constraints of an indirect call, by number, of an external function.
    pub guarded: HashMap<(usize, FuncId), Vec<Constraint>>,
}

impl Program {
    /// Returns a new node for addresses between two constraints.
    pub fn node(&mut self) -> NodeId {
        self.node_of(NodeKind::Word)
    }
    /// Returns a new node.
    pub fn node_of(&mut self, kind: NodeKind) -> NodeId {
        self.kinds.push(kind);
        NodeId(self.kinds.len() as u32 - 1)
    }
    /// Adds a constraint.
    pub fn push(&mut self, constraint: Constraint) {
        self.constraints.push(constraint);
    }
    /// Adds an address.
    pub fn address(&mut self, node: NodeId, object: ObjectId, offset: i64) {
        self.push(Constraint::Address {
            node,
            object,
            offset,
        });
    }
    /// Adds an unmoved copy.
    pub fn copy(&mut self, to: NodeId, from: NodeId) {
        if to != from {
            self.push(Constraint::Copy { to, from, bytes: 0 });
        }
    }
}
