//! Translates the unit's types and constants to LLVM.
//!
//! Both tables list members before aggregates, so a single pass over each table suffices. Imported types
//! and constants map to the host's originals.
use super::Exporter;
use crate::host::ffi::*;
use gradus_ir::{Const, ConstKind, Diagnostic, Entity, FloatKind, Type};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ptr::null_mut;

const INBOUNDS: u32 = 1;

impl Exporter<'_, '_> {
    /// Creates the LLVM type of every type that the unit added.
    pub(super) fn make_types(&mut self) -> Result<(), Diagnostic> {
        let unit = self.unit;
        for (id, ty) in unit.types.iter() {
            let known = self
                .host
                .tables
                .types
                .get(id.index())
                .is_some_and(|t| !t.is_null());
            if known {
                continue;
            }
            let made = self.make_type(ty)?;
            let types = &mut self.host.tables.types;
            if types.len() <= id.index() {
                types.resize(id.index() + 1, null_mut());
            }
            types[id.index()] = made;
        }
        Ok(())
    }

    fn make_type(&self, ty: &Type) -> Result<LLVMTypeRef, Diagnostic> {
        let ctx = self.host.ctx;
        Ok(unsafe {
            match ty {
                Type::Void => LLVMVoidTypeInContext(ctx),
                Type::Int(bits) => LLVMIntTypeInContext(ctx, *bits),
                Type::Float(kind) => float_type(ctx, *kind),
                Type::Ptr(space) => LLVMPointerTypeInContext(ctx, *space),
                Type::Vector {
                    elem,
                    len,
                    scalable: false,
                } => LLVMVectorType(self.ty(*elem), *len),
                Type::Vector {
                    elem,
                    len,
                    scalable: true,
                } => LLVMScalableVectorType(self.ty(*elem), *len),
                Type::Array { elem, len } => LLVMArrayType2(self.ty(*elem), *len),
                Type::Struct {
                    name,
                    fields,
                    packed,
                } => {
                    let mut parts: Vec<LLVMTypeRef> = fields.iter().map(|f| self.ty(*f)).collect();
                    let (start, count, packed) =
                        (parts.as_mut_ptr(), parts.len() as u32, i32::from(*packed));
                    match name {
                        None => LLVMStructTypeInContext(ctx, start, count, packed),
                        Some(name) => {
                            let made = LLVMStructCreateNamed(ctx, c_string(name).as_ptr());
                            LLVMStructSetBody(made, start, count, packed);
                            made
                        }
                    }
                }
                Type::Func {
                    result,
                    params,
                    variadic,
                } => {
                    let mut parts: Vec<LLVMTypeRef> = params.iter().map(|p| self.ty(*p)).collect();
                    let count = parts.len() as u32;
                    LLVMFunctionType(
                        self.ty(*result),
                        parts.as_mut_ptr(),
                        count,
                        i32::from(*variadic),
                    )
                }
                Type::Opaque(text) => {
                    return Err(self.broken_unit(format!("the LLVM module has no type {text}")));
                }
            }
        })
    }

    /// Creates the LLVM constant of every constant of the unit.
    pub(super) fn make_constants(&mut self) -> Result<(), Diagnostic> {
        let unit = self.unit;
        for (id, constant) in unit.consts.iter() {
            let own = self.host.tables.constants.get(&id).copied();
            let made = match own {
                Some(own) => own,
                None => self.make_constant(constant)?,
            };
            self.consts.push(made);
        }
        Ok(())
    }

    fn make_constant(&self, constant: &Const) -> Result<LLVMValueRef, Diagnostic> {
        let ty = self.ty(constant.ty);
        Ok(unsafe {
            match &constant.kind {
                ConstKind::Int(n) => {
                    let words = [*n as u64, (*n >> 64) as u64];
                    let count = if LLVMGetIntTypeWidth(ty) > 64 { 2 } else { 1 };
                    LLVMConstIntOfArbitraryPrecision(ty, count, words.as_ptr())
                }
                ConstKind::Float(bits) => {
                    let words = [*bits as u64, (*bits >> 64) as u64];
                    LLVMConstFPFromBits(ty, words.as_ptr())
                }
                ConstKind::Zero => LLVMConstNull(ty),
                ConstKind::Undef => LLVMGetUndef(ty),
                ConstKind::Poison => LLVMGetPoison(ty),
                ConstKind::Aggregate(parts) => {
                    let mut parts: Vec<LLVMValueRef> =
                        parts.iter().map(|p| self.consts[p.index()]).collect();
                    let (start, count) = (parts.as_mut_ptr(), parts.len());
                    match self.unit.types.get(constant.ty) {
                        Type::Vector { .. } => LLVMConstVector(start, count as u32),
                        Type::Array { elem, .. } => {
                            LLVMConstArray2(self.ty(*elem), start, count as u64)
                        }
                        Type::Struct { .. } => LLVMConstNamedStruct(ty, start, count as u32),
                        _ => {
                            return Err(self
                                .broken_unit("an aggregate constant has a type without members"));
                        }
                    }
                }
                ConstKind::Func(f) => self.host.tables.functions[f.index()],
                ConstKind::Global { global, offset } => {
                    let start = self.host.tables.globals[global.index()];
                    let data = &self.unit.globals[*global];
                    let size = self.unit.layout.size_bytes(self.unit, data.ty) as i64;
                    self.constant_offset(start, *offset, (0..=size).contains(offset))
                }
                ConstKind::DanglingAddress(number) => {
                    let int = LLVMInt64TypeInContext(self.host.ctx);
                    LLVMConstIntToPtr(LLVMConstInt(int, u64::from(*number), 0), ty)
                }
                ConstKind::Foreign(number) => {
                    self.host.tables.consts.get(*number).ok_or_else(|| {
                        self.broken_unit(format!("the LLVM module has no constant {number}"))
                    })?
                }
            }
        })
    }

    /// Returns the constant `start + bytes`.
    pub(super) fn constant_offset(
        &self,
        start: LLVMValueRef,
        bytes: i64,
        inbounds: bool,
    ) -> LLVMValueRef {
        if bytes == 0 {
            return start;
        }
        unsafe {
            let byte = LLVMInt8TypeInContext(self.host.ctx);
            let mut index = LLVMConstInt(LLVMInt64TypeInContext(self.host.ctx), bytes as u64, 1);
            let flags = if inbounds { INBOUNDS } else { 0 };
            LLVMConstGEPWithNoWrapFlags(byte, start, &mut index, 1, flags)
        }
    }
}

fn float_type(ctx: LLVMContextRef, kind: FloatKind) -> LLVMTypeRef {
    unsafe {
        match kind {
            FloatKind::F16 => LLVMHalfTypeInContext(ctx),
            FloatKind::BF16 => LLVMBFloatTypeInContext(ctx),
            FloatKind::F32 => LLVMFloatTypeInContext(ctx),
            FloatKind::F64 => LLVMDoubleTypeInContext(ctx),
            FloatKind::X86F80 => LLVMX86FP80TypeInContext(ctx),
            FloatKind::F128 => LLVMFP128TypeInContext(ctx),
            FloatKind::PpcF128 => LLVMPPCFP128TypeInContext(ctx),
        }
    }
}
