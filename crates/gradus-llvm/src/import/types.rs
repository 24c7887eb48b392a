//! Translates LLVM's types to type ids of the unit.
use super::Importer;
use crate::host::ffi::*;
use gradus_ir::{FloatKind, Type, TypeId};
use llvm_sys::LLVMTypeKind::{self, *};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

impl Importer<'_> {
    /// Returns the id of an LLVM type. Types nest without bound, hence the explicit stack: a type stays on
    /// the stack until its member types are numbered.
    pub(super) fn ty(&mut self, t: LLVMTypeRef) -> TypeId {
        if let Some(id) = self.host.tables.type_ids.get(&t) {
            return *id;
        }
        let mut stack = vec![t];
        while let Some(&top) = stack.last() {
            if self.host.tables.type_ids.contains_key(&top) {
                stack.pop();
                continue;
            }
            let waiting = stack.len();
            let known = &self.host.tables.type_ids;
            stack.extend(
                member_types(top)
                    .into_iter()
                    .filter(|p| !known.contains_key(p)),
            );
            if stack.len() == waiting {
                stack.pop();
                let made = self.make(top);
                self.register(top, made);
            }
        }
        self.host.tables.type_ids[&t]
    }

    fn register(&mut self, t: LLVMTypeRef, made: Type) {
        use gradus_ir::Entity;
        let id = self.unit.types.intern(made);
        let types = &mut self.host.tables.types;
        if types.len() <= id.index() {
            types.resize(id.index() + 1, std::ptr::null_mut());
        }
        types[id.index()] = t;
        self.host.tables.type_ids.insert(t, id);
    }

    /// Creates a type from numbered member types.
    fn make(&self, t: LLVMTypeRef) -> Type {
        let id = |p: LLVMTypeRef| self.host.tables.type_ids[&p];
        let ids = |t| member_types(t).into_iter().map(id).collect::<Vec<_>>();
        unsafe {
            let kind = LLVMGetTypeKind(t);
            if let Some(float) = float_kind(kind) {
                return Type::Float(float);
            }
            match kind {
                LLVMVoidTypeKind => Type::Void,
                LLVMIntegerTypeKind => Type::Int(LLVMGetIntTypeWidth(t)),
                LLVMPointerTypeKind => Type::Ptr(LLVMGetPointerAddressSpace(t)),
                LLVMVectorTypeKind | LLVMScalableVectorTypeKind => Type::Vector {
                    elem: id(LLVMGetElementType(t)),
                    len: LLVMGetVectorSize(t),
                    scalable: kind == LLVMScalableVectorTypeKind,
                },
                LLVMArrayTypeKind => Type::Array {
                    elem: id(LLVMGetElementType(t)),
                    len: LLVMGetArrayLength2(t),
                },
                LLVMStructTypeKind if LLVMIsOpaqueStruct(t) == 0 => Type::Struct {
                    name: self.struct_name(t),
                    fields: ids(t),
                    packed: LLVMIsPackedStruct(t) != 0,
                },
                LLVMFunctionTypeKind => {
                    let mut parts = ids(t);
                    let result = parts.remove(0);
                    Type::Func {
                        result,
                        params: parts,
                        variadic: LLVMIsFunctionVarArg(t) != 0,
                    }
                }
                _ => Type::Opaque(take_message(LLVMPrintTypeToString(t))),
            }
        }
    }

    /// Returns the name of an identified struct type; `None` for a literal struct.
    fn struct_name(&self, t: LLVMTypeRef) -> Option<String> {
        if unsafe { LLVMIsLiteralStruct(t) } != 0 {
            return None;
        }
        let name = unsafe { LLVMGetStructName(t) };
        if name.is_null() {
            return Some(format!("unnamed.{}", self.host.tables.type_ids.len()));
        }
        Some(
            unsafe { std::ffi::CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned(),
        )
    }
}

/// Returns the member types of a type; a function's result comes first.
fn member_types(t: LLVMTypeRef) -> Vec<LLVMTypeRef> {
    unsafe {
        match LLVMGetTypeKind(t) {
            LLVMVectorTypeKind | LLVMScalableVectorTypeKind | LLVMArrayTypeKind => {
                vec![LLVMGetElementType(t)]
            }
            LLVMStructTypeKind if LLVMIsOpaqueStruct(t) == 0 => {
                let mut parts = vec![std::ptr::null_mut(); LLVMCountStructElementTypes(t) as usize];
                LLVMGetStructElementTypes(t, parts.as_mut_ptr());
                parts
            }
            LLVMFunctionTypeKind => {
                let mut parts = vec![std::ptr::null_mut(); LLVMCountParamTypes(t) as usize];
                LLVMGetParamTypes(t, parts.as_mut_ptr());
                parts.insert(0, LLVMGetReturnType(t));
                parts
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the floating-point format of a type kind.
pub(crate) fn float_kind(kind: LLVMTypeKind) -> Option<FloatKind> {
    Some(match kind {
        LLVMHalfTypeKind => FloatKind::F16,
        LLVMBFloatTypeKind => FloatKind::BF16,
        LLVMFloatTypeKind => FloatKind::F32,
        LLVMDoubleTypeKind => FloatKind::F64,
        LLVMX86_FP80TypeKind => FloatKind::X86F80,
        LLVMFP128TypeKind => FloatKind::F128,
        LLVMPPC_FP128TypeKind => FloatKind::PpcF128,
        _ => return None,
    })
}
