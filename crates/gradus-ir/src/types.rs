//! Types: LLVM's, interned, with opaque pointers.

use crate::{Arena, TypeId};
use std::collections::HashMap;

/// The floating-point formats of LLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FloatKind {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// The 80-bit format of x87.
    X86F80,
    /// IEEE binary128.
    F128,
    /// A pair of binary64 (PowerPC).
    PpcF128,
}

impl FloatKind {
    /// The number of bits that carry the value.
    pub fn bits(self) -> u32 {
        match self {
            FloatKind::F16 | FloatKind::BF16 => 16,
            FloatKind::F32 => 32,
            FloatKind::F64 => 64,
            FloatKind::X86F80 => 80,
            FloatKind::F128 | FloatKind::PpcF128 => 128,
        }
    }
}

/// A type of the language.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    Void,
    /// An integer of so many bits.
    Int(u32),
    /// A floating-point number.
    Float(FloatKind),
    /// An opaque pointer in an address space.
    Ptr(u32),
    /// A vector of `len` elements, times a run-time factor where `scalable`.
    Vector {
        /// The element: an integer, a float or a pointer.
        elem: TypeId,
        /// The (minimal) number of elements.
        len: u32,
        /// Whether the number is multiplied by the target's vector scale.
        scalable: bool,
    },
    /// An array of `len` elements.
    Array {
        /// The element.
        elem: TypeId,
        /// The number of elements.
        len: u64,
    },
    /// A structure; two of different names are different types.
    Struct {
        /// The host's name, where it has one.
        name: Option<String>,
        /// The fields in order.
        fields: Vec<TypeId>,
        /// Whether fields lie without padding.
        packed: bool,
    },
    /// A function.
    Func {
        /// The result.
        result: TypeId,
        /// The parameters.
        params: Vec<TypeId>,
        /// Whether further arguments may follow.
        variadic: bool,
    },
    /// A type that only the host understands (`token`, `metadata`, target types), by its text.
    Opaque(String),
}

/// The interned types of a unit.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    types: Arena<TypeId, Type>,
    ids: HashMap<Type, TypeId>,
}

impl TypeTable {
    /// The id of `ty`, interned.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(&id) = self.ids.get(&ty) {
            return id;
        }
        let id = self.types.push(ty.clone());
        self.ids.insert(ty, id);
        id
    }
    /// The type behind `id`.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }
    /// The id of `ty`, if it was interned before.
    pub fn find(&self, ty: &Type) -> Option<TypeId> {
        self.ids.get(ty).copied()
    }
    /// All types, in the order of interning.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (TypeId, &Type)> {
        self.types.iter()
    }
    /// `void`.
    pub fn void(&mut self) -> TypeId {
        self.intern(Type::Void)
    }
    /// The integer of `bits` bits.
    pub fn int(&mut self, bits: u32) -> TypeId {
        self.intern(Type::Int(bits))
    }
    /// A floating-point type.
    pub fn float(&mut self, kind: FloatKind) -> TypeId {
        self.intern(Type::Float(kind))
    }
    /// IEEE binary64.
    pub fn f64(&mut self) -> TypeId {
        self.float(FloatKind::F64)
    }
    /// The pointer of address space 0.
    pub fn ptr(&mut self) -> TypeId {
        self.intern(Type::Ptr(0))
    }
    /// A vector of `len` elements.
    pub fn vector(&mut self, elem: TypeId, len: u32) -> TypeId {
        self.intern(Type::Vector {
            elem,
            len,
            scalable: false,
        })
    }
    /// An array of `len` elements.
    pub fn array(&mut self, elem: TypeId, len: u64) -> TypeId {
        self.intern(Type::Array { elem, len })
    }
    /// An unnamed structure with its natural padding.
    pub fn tuple(&mut self, fields: Vec<TypeId>) -> TypeId {
        self.intern(Type::Struct {
            name: None,
            fields,
            packed: false,
        })
    }
    /// A function type without variadic arguments.
    pub fn func(&mut self, result: TypeId, params: Vec<TypeId>) -> TypeId {
        self.intern(Type::Func {
            result,
            params,
            variadic: false,
        })
    }
    /// A function type with further arguments after those of `func`; any other type itself.
    pub fn with_further_args(&mut self, func: TypeId) -> TypeId {
        match self.get(func).clone() {
            Type::Func { result, params, .. } => self.intern(Type::Func {
                result,
                params,
                variadic: true,
            }),
            _ => func,
        }
    }
    /// Whether a function type takes further arguments.
    pub fn takes_further_args(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Func { variadic: true, .. })
    }
    /// The element of a vector, else the type itself.
    pub fn scalar(&self, id: TypeId) -> TypeId {
        match *self.get(id) {
            Type::Vector { elem, .. } => elem,
            _ => id,
        }
    }
    /// The format of a float or of a vector of floats.
    pub fn float_kind(&self, id: TypeId) -> Option<FloatKind> {
        match *self.get(self.scalar(id)) {
            Type::Float(kind) => Some(kind),
            _ => None,
        }
    }
    /// The width in bits of an integer or of a vector of integers.
    pub fn int_bits(&self, id: TypeId) -> Option<u32> {
        match *self.get(self.scalar(id)) {
            Type::Int(bits) => Some(bits),
            _ => None,
        }
    }
    /// Whether `id` is a pointer or a vector of pointers.
    pub fn is_ptr(&self, id: TypeId) -> bool {
        matches!(self.get(self.scalar(id)), Type::Ptr(_))
    }
    /// Whether `id` is `void`.
    pub fn is_void(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Void)
    }
    /// The type with its element replaced: `elem` itself for a scalar, else a vector of it.
    pub fn with_scalar(&mut self, id: TypeId, elem: TypeId) -> TypeId {
        match *self.get(id) {
            Type::Vector { len, scalable, .. } => self.intern(Type::Vector {
                elem,
                len,
                scalable,
            }),
            _ => elem,
        }
    }
    /// The type of field or element `index` of an aggregate.
    pub fn field(&self, id: TypeId, index: u32) -> Option<TypeId> {
        match self.get(id) {
            Type::Struct { fields, .. } => fields.get(index as usize).copied(),
            Type::Array { elem, len } => (u64::from(index) < *len).then_some(*elem),
            Type::Vector { elem, len, .. } => (index < *len).then_some(*elem),
            _ => None,
        }
    }
}
