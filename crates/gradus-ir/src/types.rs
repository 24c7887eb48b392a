//! Types: interned LLVM types with opaque pointers.

use crate::{Arena, TypeId};
use std::collections::HashMap;

/// LLVM's floating-point formats.
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
    /// A pair of binary64 (PowerPC double-double).
    PpcF128,
}

impl FloatKind {
    /// The format's width in bits, without padding.
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

/// A type of the IR.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    Void,
    /// An integer type; the width in bits.
    Int(u32),
    /// A floating-point number.
    Float(FloatKind),
    /// An opaque pointer in an address space.
    Ptr(u32),
    /// A vector of `len` elements, multiplied by the target's `vscale` if `scalable`.
    Vector {
        /// The element: an integer, a float or a pointer.
        elem: TypeId,
        /// The (minimum) number of elements.
        len: u32,
        /// True if the number of elements is multiplied by the target's `vscale`.
        scalable: bool,
    },
    /// An array of `len` elements.
    Array {
        /// The element.
        elem: TypeId,
        /// The number of elements.
        len: u64,
    },
    /// A structure. Structures with different names are different types.
    Struct {
        /// The host's name; `None` for a literal structure.
        name: Option<String>,
        /// The fields in order.
        fields: Vec<TypeId>,
        /// True if the fields are laid out without padding.
        packed: bool,
    },
    /// A function.
    Func {
        /// The result.
        result: TypeId,
        /// The parameters.
        params: Vec<TypeId>,
        /// True if the function is variadic.
        variadic: bool,
    },
    /// A type opaque to Gradus (`token`, `metadata`, target types), as LLVM text.
    Opaque(String),
}

/// The interned types of a unit.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    types: Arena<TypeId, Type>,
    ids: HashMap<Type, TypeId>,
}

impl TypeTable {
    /// Interns `ty` and returns the id.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(&id) = self.ids.get(&ty) {
            return id;
        }
        let id = self.types.push(ty.clone());
        self.ids.insert(ty, id);
        id
    }
    /// Returns the type behind `id`.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }
    /// Returns the id of `ty`, if already interned.
    pub fn find(&self, ty: &Type) -> Option<TypeId> {
        self.ids.get(ty).copied()
    }
    /// Iterates over all types in the order of interning.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (TypeId, &Type)> {
        self.types.iter()
    }
    /// `void`.
    pub fn void(&mut self) -> TypeId {
        self.intern(Type::Void)
    }
    /// The integer type of `bits` bits.
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
    /// The pointer type of address space 0.
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
    /// Returns the variadic version of the function type `func`; any other type unchanged.
    pub fn with_varargs(&mut self, func: TypeId) -> TypeId {
        match self.get(func).clone() {
            Type::Func { result, params, .. } => self.intern(Type::Func {
                result,
                params,
                variadic: true,
            }),
            _ => func,
        }
    }
    /// Returns whether a function type is variadic.
    pub fn is_variadic(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Func { variadic: true, .. })
    }
    /// Returns the element type of a vector, or the type itself.
    pub fn scalar(&self, id: TypeId) -> TypeId {
        match *self.get(id) {
            Type::Vector { elem, .. } => elem,
            _ => id,
        }
    }
    /// Returns the format of a float or of a vector of floats.
    pub fn float_kind(&self, id: TypeId) -> Option<FloatKind> {
        match *self.get(self.scalar(id)) {
            Type::Float(kind) => Some(kind),
            _ => None,
        }
    }
    /// Returns the width in bits of an integer or of a vector of integers.
    pub fn int_bits(&self, id: TypeId) -> Option<u32> {
        match *self.get(self.scalar(id)) {
            Type::Int(bits) => Some(bits),
            _ => None,
        }
    }
    /// Returns whether `id` is a pointer or a vector of pointers.
    pub fn is_ptr(&self, id: TypeId) -> bool {
        matches!(self.get(self.scalar(id)), Type::Ptr(_))
    }
    /// Returns whether `id` is `void`.
    pub fn is_void(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Void)
    }
    /// Returns `id` with the element type replaced: a vector of `elem` for a vector, `elem` itself otherwise.
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
    /// Returns the type of field or element `index` of an aggregate.
    pub fn field(&self, id: TypeId, index: u32) -> Option<TypeId> {
        match self.get(id) {
            Type::Struct { fields, .. } => fields.get(index as usize).copied(),
            Type::Array { elem, len } => (u64::from(index) < *len).then_some(*elem),
            Type::Vector { elem, len, .. } => (index < *len).then_some(*elem),
            _ => None,
        }
    }
}
