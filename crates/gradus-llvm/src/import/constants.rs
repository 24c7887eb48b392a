//! Translates LLVM constants to interned constants of the unit, and reads initialisers of globals.
//!
//! `symbol + offset` is recognised in any constant expression. A constant without a counterpart (other
//! constant expressions, very wide integers, inline assembly, metadata operands) is a foreign constant: a
//! number in the host's table.
use super::Importer;
use crate::host::ffi::*;
use gradus_ir::{
    ConstId, ConstKind, Global, GlobalId, Initializer, Linkage, MIN_OBJECT_ADDRESS, Relocation,
    Symbol,
};
use llvm_sys::LLVMTypeKind::*;
use llvm_sys::LLVMValueKind::{self, *};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::*;
use llvm_sys::{LLVMLinkage, LLVMOpcode, LLVMThreadLocalMode};
use std::collections::HashSet;
use std::ptr::null_mut;

/// The most elements of an aggregate constant; a larger one is a foreign constant.
const AGGREGATE_ELEMENTS_MAX: u32 = 4096;
/// The most bytes of an initialiser that is read.
const INITIALIZER_BYTES_MAX: u64 = 1 << 24;

unsafe extern "C" {
    fn gr_integer_words(constant: LLVMValueRef, out: *mut u64, room: u32) -> u32;
    fn gr_float_bits(constant: LLVMValueRef, out: *mut u64) -> u32;
    fn gr_symbol_offset(
        constant: LLVMValueRef,
        module: LLVMModuleRef,
        symbol: *mut LLVMValueRef,
        offset: *mut i64,
    ) -> i32;
}

/// Returns the value of an integer constant of at most 128 bits.
pub(super) fn integer(constant: LLVMValueRef) -> Option<u128> {
    let mut words = [0; 2];
    let count = unsafe { gr_integer_words(constant, words.as_mut_ptr(), 2) };
    (count <= 2).then(|| u128::from(words[0]) | u128::from(words[1]) << 64)
}

/// Maximal depth of the constant expressions that [`displaced_address`] reads.
const EXPRESSION_DEPTH_MAX: usize = 16;

/// Returns the number behind an `inttoptr` constant below all objects. Address spaces except 0 are left
/// out, because their first page may hold objects.
fn address_below_objects(c: LLVMValueRef) -> Option<u16> {
    let number = u16::try_from(inttoptr_constant(c)?).ok()?;
    (1..MIN_OBJECT_ADDRESS).contains(&number).then_some(number)
}

/// Returns the number behind an `inttoptr` constant (vtables contain offsets in this form).
fn inttoptr_constant(c: LLVMValueRef) -> Option<u128> {
    unsafe {
        let cast = LLVMGetValueKind(c) == LLVMConstantExprValueKind
            && LLVMGetConstOpcode(c) == llvm_sys::LLVMOpcode::LLVMIntToPtr
            && LLVMGetTypeKind(LLVMTypeOf(c)) == LLVMPointerTypeKind
            && LLVMGetPointerAddressSpace(LLVMTypeOf(c)) == 0;
        let from = cast.then(|| LLVMGetOperand(c, 0))?;
        match LLVMGetValueKind(from) {
            LLVMConstantIntValueKind => integer(from),
            _ => None,
        }
    }
}

/// Returns the pointer and the distance of an `inttoptr` constant: `inttoptr (add (ptrtoint @g, 8))`.
fn displaced_address(c: LLVMValueRef) -> Option<(LLVMValueRef, i64)> {
    use llvm_sys::LLVMOpcode::{LLVMAdd, LLVMIntToPtr, LLVMPtrToInt};
    let mut distance = 0i64;
    let mut at = c;
    for _ in 0..EXPRESSION_DEPTH_MAX {
        unsafe {
            if LLVMGetValueKind(at) != LLVMConstantExprValueKind {
                return None;
            }
            match LLVMGetConstOpcode(at) {
                LLVMIntToPtr if at == c => at = LLVMGetOperand(at, 0),
                LLVMPtrToInt if at != c => return Some((LLVMGetOperand(at, 0), distance)),
                LLVMAdd => {
                    let by = LLVMGetOperand(at, 1);
                    if LLVMGetValueKind(by) != LLVMConstantIntValueKind {
                        return None;
                    }
                    distance = distance.checked_add(LLVMConstIntGetSExtValue(by))?;
                    at = LLVMGetOperand(at, 0);
                }
                _ => return None,
            }
        }
    }
    None
}

/// Returns the bits of a floating-point constant.
fn float(constant: LLVMValueRef) -> u128 {
    let mut words = [0; 2];
    unsafe { gr_float_bits(constant, words.as_mut_ptr()) };
    u128::from(words[0]) | u128::from(words[1]) << 64
}

/// Returns the elements of an aggregate constant; `None` for other constants and for very large ones.
fn elements(c: LLVMValueRef) -> Option<Vec<LLVMValueRef>> {
    unsafe {
        let t = LLVMTypeOf(c);
        let count = match LLVMGetValueKind(c) {
            LLVMConstantStructValueKind
            | LLVMConstantArrayValueKind
            | LLVMConstantVectorValueKind => LLVMGetNumOperands(c) as u32,
            LLVMConstantDataArrayValueKind => u32::try_from(LLVMGetArrayLength2(t)).ok()?,
            LLVMConstantDataVectorValueKind => LLVMGetVectorSize(t),
            _ => return None,
        };
        (count <= AGGREGATE_ELEMENTS_MAX)
            .then(|| (0..count).map(|i| LLVMGetAggregateElement(c, i)).collect())
    }
}

impl Importer<'_> {
    /// Returns the id of an LLVM constant (or of another value that no instruction defines).
    pub(super) fn constant(&mut self, c: LLVMValueRef) -> ConstId {
        if let Some(id) = self.const_ids.get(&c) {
            return *id;
        }
        let mut stack = vec![c];
        while let Some(&top) = stack.last() {
            if self.const_ids.contains_key(&top) {
                stack.pop();
                continue;
            }
            let parts = elements(top).unwrap_or_default();
            let waiting = stack.len();
            stack.extend(
                parts
                    .into_iter()
                    .filter(|p| !self.const_ids.contains_key(p)),
            );
            if stack.len() == waiting {
                stack.pop();
                let ty = self.ty(unsafe { LLVMTypeOf(top) });
                let kind = self.constant_kind(top);
                let id = self.unit.consts.intern(ty, kind);
                self.const_ids.insert(top, id);
                self.host.tables.constants.entry(id).or_insert(top);
            }
        }
        self.const_ids[&c]
    }

    fn constant_kind(&mut self, c: LLVMValueRef) -> ConstKind {
        if let Some(parts) = elements(c) {
            return ConstKind::Aggregate(parts.iter().map(|p| self.const_ids[p]).collect());
        }
        let scalar = |kind| unsafe { LLVMGetTypeKind(LLVMTypeOf(c)) == kind };
        match unsafe { LLVMGetValueKind(c) } {
            LLVMConstantIntValueKind if scalar(LLVMIntegerTypeKind) => integer(c)
                .map(ConstKind::Int)
                .unwrap_or_else(|| self.foreign_constant(c)),
            LLVMConstantFPValueKind
                if !scalar(LLVMVectorTypeKind) && !scalar(LLVMScalableVectorTypeKind) =>
            {
                ConstKind::Float(float(c))
            }
            LLVMConstantPointerNullValueKind | LLVMConstantAggregateZeroValueKind => {
                ConstKind::Zero
            }
            LLVMUndefValueValueKind => ConstKind::Undef,
            LLVMPoisonValueKind => ConstKind::Poison,
            _ => match self.symbol_and_offset(c) {
                Some((Symbol::Func(f), 0)) => ConstKind::Func(f),
                Some((Symbol::Global(global), offset)) => ConstKind::Global { global, offset },
                _ => match address_below_objects(c) {
                    Some(number) => ConstKind::DanglingAddress(number),
                    None => self.foreign_constant(c),
                },
            },
        }
    }

    fn foreign_constant(&mut self, c: LLVMValueRef) -> ConstKind {
        ConstKind::Foreign(self.host.tables.consts.number(c))
    }

    /// Matches a constant that is a symbol's address plus an offset in bytes.
    fn symbol_and_offset(&mut self, c: LLVMValueRef) -> Option<(Symbol, i64)> {
        unsafe {
            let (mut symbol, mut offset) = (null_mut(), 0);
            if LLVMIsAConstant(c).is_null() || LLVMGetTypeKind(LLVMTypeOf(c)) != LLVMPointerTypeKind
            {
                return None;
            }
            if gr_symbol_offset(c, self.host.module, &mut symbol, &mut offset) == 0 {
                let (pointer, more) = displaced_address(c)?;
                let (symbol, offset) = self.symbol_and_offset(pointer)?;
                return Some((symbol, offset.checked_add(more)?));
            }
            if is_variable_alias(symbol) {
                let (variable, inside) = self.symbol_and_offset(LLVMAliasGetAliasee(symbol))?;
                return Some((variable, inside.checked_add(offset)?));
            }
            Some((self.symbol(symbol)?, offset))
        }
    }

    /// Returns the unit's symbol of a global value.
    pub(super) fn symbol(&mut self, value: LLVMValueRef) -> Option<Symbol> {
        match unsafe { LLVMGetValueKind(value) } {
            LLVMValueKind::LLVMFunctionValueKind => Some(Symbol::Func(self.func(value))),
            LLVMValueKind::LLVMGlobalVariableValueKind => Some(Symbol::Global(self.global(value))),
            LLVMValueKind::LLVMGlobalAliasValueKind if is_function_alias(value) => {
                self.symbol(unsafe { LLVMAliasGetAliasee(value) })
            }
            LLVMValueKind::LLVMGlobalAliasValueKind | LLVMValueKind::LLVMGlobalIFuncValueKind => {
                let t = unsafe { LLVMGlobalGetValueType(value) };
                let is_code = unsafe { LLVMGetTypeKind(t) } == LLVMFunctionTypeKind;
                is_code.then(|| Symbol::Func(self.func(value)))
            }
            _ => None,
        }
    }

    /// Returns the unit's variable for a host variable; adds it on first use.
    pub(super) fn global(&mut self, g: LLVMValueRef) -> GlobalId {
        if let Some(id) = self.global_ids.get(&g) {
            return *id;
        }
        let ty = self.ty(unsafe { LLVMGlobalGetValueType(g) });
        let name = self.symbol_name(g);
        let global = unsafe {
            Global {
                ty,
                constant: LLVMIsGlobalConstant(g) != 0
                    || is_vtable_or_typeinfo(&name)
                    || self.is_never_written(g),
                name,
                thread_local: LLVMGetThreadLocalMode(g) != LLVMThreadLocalMode::LLVMNotThreadLocal,
                defined: LLVMIsDeclaration(g) == 0,
                linkage: linkage(LLVMGetLinkage(g)),
                align_bytes: match LLVMGetAlignment(g) {
                    0 => LLVMPreferredAlignmentOfGlobal(self.data_layout, g),
                    n => n,
                },
                init: None,
                unparsed_symbols: Vec::new(),
                room_bytes: 0,
                derived_from: None,
            }
        };
        let id = self.unit.add_global(global);
        self.host.tables.globals.push(g);
        self.global_ids.insert(g, id);
        self.unread_globals.push((id, g));
        id
    }

    /// Returns a symbol's name; an unnamed symbol gets a fresh name, because the unit identifies symbols by
    /// name.
    pub(super) fn symbol_name(&mut self, value: LLVMValueRef) -> String {
        let name = unsafe { name_of(value) };
        if name.is_empty() {
            self.unit.fresh_name("__gradus_unnamed")
        } else {
            name
        }
    }

    /// Reads the initialisers of all imported variables, and of the variables that these reference.
    pub(super) fn read_initializers(&mut self) {
        while let Some((id, g)) = self.unread_globals.pop() {
            let init = unsafe { LLVMGetInitializer(g) };
            if init.is_null() {
                continue;
            }
            match self.initializer(init) {
                Some(image) => self.unit.globals[id].init = Some(image),
                None => self.unit.globals[id].unparsed_symbols = self.referenced_symbols(init),
            }
        }
    }

    /// Returns the symbols that a constant references, at any depth.
    fn referenced_symbols(&mut self, constant: LLVMValueRef) -> Vec<Symbol> {
        let (mut seen, mut work, mut found) = (HashSet::new(), vec![constant], Vec::new());
        while let Some(c) = work.pop() {
            unsafe {
                if LLVMIsAConstant(c).is_null() || !seen.insert(c) {
                    continue;
                }
                if LLVMIsAGlobalValue(c).is_null() {
                    let operands = 0..LLVMGetNumOperands(c).unsigned_abs();
                    work.extend(operands.map(|i| LLVMGetOperand(c, i)));
                    continue;
                }
                match self.symbol(c) {
                    Some(symbol) => found.push(symbol),
                    None if LLVMGetValueKind(c) == LLVMGlobalAliasValueKind => {
                        work.push(LLVMAliasGetAliasee(c));
                    }
                    None => {}
                }
            }
        }
        found
    }

    /// Returns the bytes and relocations of an initialiser; `None` if a part has no byte representation.
    fn initializer(&mut self, init: LLVMValueRef) -> Option<Initializer> {
        let layout = self.data_layout;
        let size = unsafe { LLVMABISizeOfType(layout, LLVMTypeOf(init)) };
        if size > INITIALIZER_BYTES_MAX || !self.unit.layout.little_endian {
            return None;
        }
        let mut image = Initializer {
            bytes: vec![0; size as usize],
            relocations: Vec::new(),
        };
        let mut stack = vec![(init, 0u64)];
        while let Some((c, at)) = stack.pop() {
            unsafe {
                let t = LLVMTypeOf(c);
                match LLVMGetValueKind(c) {
                    LLVMConstantAggregateZeroValueKind
                    | LLVMConstantPointerNullValueKind
                    | LLVMUndefValueValueKind
                    | LLVMPoisonValueKind => {}
                    LLVMConstantDataArrayValueKind | LLVMConstantDataVectorValueKind => {
                        // The binding declares the address of the length as an integer.
                        let mut len = 0usize;
                        let data = LLVMGetRawDataValues(c, (&raw mut len) as usize).cast::<u8>();
                        write_bytes(&mut image.bytes, at, std::slice::from_raw_parts(data, len))?;
                    }
                    LLVMConstantStructValueKind => {
                        for i in 0..LLVMGetNumOperands(c) as u32 {
                            let offset = LLVMOffsetOfElement(layout, t, i);
                            stack.push((LLVMGetOperand(c, i), at + offset));
                        }
                    }
                    LLVMConstantArrayValueKind | LLVMConstantVectorValueKind => {
                        let stride = LLVMABISizeOfType(layout, LLVMGetElementType(t));
                        for i in 0..LLVMGetNumOperands(c) as u32 {
                            stack.push((LLVMGetOperand(c, i), at + u64::from(i) * stride));
                        }
                    }
                    LLVMConstantIntValueKind if LLVMGetTypeKind(t) == LLVMIntegerTypeKind => {
                        let bytes = LLVMStoreSizeOfType(layout, t) as usize;
                        write_bytes(
                            &mut image.bytes,
                            at,
                            integer(c)?.to_le_bytes().get(..bytes)?,
                        )?;
                    }
                    LLVMConstantFPValueKind if LLVMGetTypeKind(t) != LLVMVectorTypeKind => {
                        let bytes = LLVMStoreSizeOfType(layout, t) as usize;
                        write_bytes(&mut image.bytes, at, float(c).to_le_bytes().get(..bytes)?)?;
                    }
                    _ if let Some(number) = inttoptr_constant(c) => {
                        let bytes = LLVMStoreSizeOfType(layout, t) as usize;
                        write_bytes(&mut image.bytes, at, number.to_le_bytes().get(..bytes)?)?;
                    }
                    _ => {
                        let (target, addend) = self.symbol_and_offset(strip_ptrtoint(layout, c))?;
                        image.relocations.push(Relocation {
                            offset_bytes: at,
                            target,
                            addend,
                        });
                    }
                }
            }
        }
        image.relocations.sort_by_key(|r| r.offset_bytes);
        Some(image)
    }
}

/// Returns the pointer behind a `ptrtoint` constant of full width (flang stores the addresses of type-bound
/// procedures as integers); any other constant unchanged.
pub(super) fn strip_ptrtoint(layout: LLVMTargetDataRef, c: LLVMValueRef) -> LLVMValueRef {
    unsafe {
        let is_number = LLVMGetValueKind(c) == LLVMConstantExprValueKind
            && LLVMGetConstOpcode(c) == LLVMOpcode::LLVMPtrToInt;
        if !is_number {
            return c;
        }
        let pointer = LLVMGetOperand(c, 0);
        let bytes = |value| LLVMStoreSizeOfType(layout, LLVMTypeOf(value));
        match bytes(c) == bytes(pointer) {
            true => pointer,
            false => c,
        }
    }
}

fn write_bytes(image: &mut [u8], at: u64, bytes: &[u8]) -> Option<()> {
    let at = usize::try_from(at).ok()?;
    image.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

/// Maps LLVM's linkage to the unit's.
pub(super) fn linkage(l: LLVMLinkage) -> Linkage {
    use LLVMLinkage::*;
    match l {
        LLVMInternalLinkage | LLVMPrivateLinkage => Linkage::Internal,
        LLVMLinkOnceODRLinkage | LLVMWeakODRLinkage => Linkage::LinkOnceOdr,
        LLVMLinkOnceAnyLinkage
        | LLVMWeakAnyLinkage
        | LLVMCommonLinkage
        | LLVMExternalWeakLinkage => Linkage::Interposable,
        _ => Linkage::External,
    }
}

/// Returns whether a variable is a vtable, a VTT, or type info by its name. The compiler emits these, and
/// writing to them is forbidden (Itanium C++ ABI, §2.5, §2.9, §5.1.4). clang declares them non-constant if
/// another file defines them.
fn is_vtable_or_typeinfo(name: &str) -> bool {
    ["_ZTV", "_ZTT", "_ZTI", "_ZTS"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Returns whether a symbol is a non-interposable alias of a variable or of a part of a variable.
fn is_variable_alias(symbol: LLVMValueRef) -> bool {
    unsafe {
        LLVMGetValueKind(symbol) == LLVMValueKind::LLVMGlobalAliasValueKind
            && LLVMGetTypeKind(LLVMGlobalGetValueType(symbol)) != LLVMFunctionTypeKind
            && linkage(LLVMGetLinkage(symbol)) != Linkage::Interposable
    }
}

/// Returns whether an alias is a non-interposable alias of a function: clang emits two names for a
/// constructor if a class has no virtual bases.
fn is_function_alias(alias: LLVMValueRef) -> bool {
    unsafe {
        let kind = LLVMGetValueKind(LLVMAliasGetAliasee(alias));
        let is_named = matches!(
            kind,
            LLVMValueKind::LLVMFunctionValueKind | LLVMValueKind::LLVMGlobalAliasValueKind
        );
        is_named && linkage(LLVMGetLinkage(alias)) != Linkage::Interposable
    }
}
