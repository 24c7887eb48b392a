//! Type info: reads size, default values and allocatable components of a derived type from flang's constant
//! tables.
//!
//! The tables are those of flang-rt 22 (`__fortran_type_info`: derived types and components;
//! `flang/Runtime/type-info.h`). If a table is incomplete, or if the answer is known only at run time
//! (final procedures, possibly polymorphic components), the functions return `None`.

use crate::host::ffi::{c_string, name_of};
use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::{constant_int, constant_part};
use crate::prepare::fortran::element_layout::{Element, ScalarRun};
use llvm_sys::LLVMLinkage::LLVMPrivateLinkage;
use llvm_sys::LLVMOpcode::LLVMPtrToInt;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::*;

/// The members of a type's table: the bytes of a variable, and the descriptors of its components and of its
/// procedure components. The flags state that nothing is initialised, destroyed or finalised, and that no
/// assignment is user-defined.
const SIZE: u32 = 2;
const COMPONENTS: u32 = 6;
const PROCEDURES: u32 = 7;
const NOTHING_TO_INITIALISE: u32 = 11;
const NOTHING_TO_DESTROY: u32 = 12;
const NOTHING_TO_FINALISE: u32 = 13;
const NO_ASSIGNMENT_DEFINED: u32 = 14;

/// The members of a component's entry: genre (storage form), category and kind of its type, rank, offset,
/// the descriptor that names its derived type, bounds, and default value.
const GENRE: u32 = 1;
const CATEGORY: u32 = 2;
const KIND: u32 = 3;
const COMPONENT_RANK: u32 = 4;
const OFFSET: u32 = 6;
const DERIVED: u32 = 8;
const BOUNDS: u32 = 10;
const INITIAL: u32 = 11;
const GENRE_DATA: u64 = 1;
const GENRE_POINTER: u64 = 2;
const GENRE_ALLOCATABLE: u64 = 3;
const GENRE_AUTOMATIC: u64 = 4;

/// The most scalars of a variable that is copied scalar by scalar.
const COPIED_SCALARS_MAX: u64 = 64;

/// Descriptor constants: version of the layout, the attributes of pointers and allocatables, and the type
/// code of derived types.
const VERSION: u64 = 20_240_719;
const ATTRIBUTE_POINTER: u64 = 1;
const ALLOCATABLE: u64 = 2;
const OF_DERIVED_TYPE: u64 = 42;

/// The table of a derived type.
#[derive(Clone, Copy)]
pub(super) struct Type(LLVMValueRef);

/// A default value of each element of a variable.
pub(super) struct DefaultValue {
    /// The byte offset in an element.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The constant.
    pub(super) value: LLVMValueRef,
}

/// An allocatable component of a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AllocatableComponent {
    /// The byte offset of the component's descriptor in the variable.
    pub(super) offset: u64,
    pub(super) rank: u64,
    pub(super) element: Element,
}

/// An entry for a component in a type's table.
struct Component {
    genre: u64,
    category: u64,
    kind: u64,
    rank: u64,
    /// The number of elements, if constant.
    count: Option<u64>,
    offset: u64,
    /// The derived type of the component, if any.
    derived: Option<Type>,
}

impl Type {
    /// Returns the type with the given table.
    ///
    /// # Safety
    /// `value` is a live value.
    pub(super) unsafe fn of(value: LLVMValueRef) -> Option<Type> {
        unsafe { constant_contents(value).map(|_| Type(value)) }
    }

    unsafe fn member(self, index: u32) -> Option<LLVMValueRef> {
        unsafe { constant_part(constant_contents(self.0)?, index) }
    }

    unsafe fn flag(self, index: u32) -> Option<bool> {
        unsafe { Some(constant_int(self.member(index)?)? != 0) }
    }

    /// Returns the entries of the components.
    unsafe fn entries(self) -> Option<Vec<LLVMValueRef>> {
        unsafe {
            let entries = constant_part(self.member(COMPONENTS)?, 0)?;
            if LLVMIsNull(entries) != 0 {
                return Some(Vec::new());
            }
            let entries = constant_contents(entries)?;
            let count = LLVMGetArrayLength2(LLVMTypeOf(entries)) as u32;
            (0..count).map(|at| constant_part(entries, at)).collect()
        }
    }

    /// Returns the layout of a variable for copying; `None` if an assignment does more than copy, or if
    /// components are unknown.
    ///
    /// # Safety
    /// The module of the table is live.
    pub(super) unsafe fn copy_layout(self) -> Option<Element> {
        unsafe {
            let is_plain = self.flag(NOTHING_TO_DESTROY)?
                && self.flag(NOTHING_TO_FINALISE)?
                && self.flag(NO_ASSIGNMENT_DEFINED)?;
            let parts = is_plain.then(|| self.copied_scalars())??;
            Some(Element::record(self.size()?, parts))
        }
    }

    /// Returns the layout of a variable without its allocatable components, and those components; `None` if
    /// an assignment does more than copy each, or if components are unknown.
    ///
    /// # Safety
    /// The module of the table is live.
    pub(super) unsafe fn copy_layout_with_allocatables(
        self,
    ) -> Option<(Element, Vec<AllocatableComponent>)> {
        let (mut parts, mut held) = (Vec::new(), Vec::new());
        unsafe {
            self.add_copied(0, &mut parts, &mut held)?;
            let numbers: u64 = parts.iter().map(|part: &ScalarRun| part.count).sum();
            (numbers <= COPIED_SCALARS_MAX).then_some((Element::record(self.size()?, parts), held))
        }
    }

    /// Adds the copied fields of a variable at byte `start`.
    unsafe fn add_copied(
        self,
        start: u64,
        parts: &mut Vec<ScalarRun>,
        held: &mut Vec<AllocatableComponent>,
    ) -> Option<()> {
        unsafe {
            if !self.flag(NOTHING_TO_FINALISE)?
                || !self.flag(NO_ASSIGNMENT_DEFINED)?
                || !self.has_no_procedures()?
            {
                return None;
            }
            for entry in self.entries()? {
                let component = Component::read(entry)?;
                let offset = start.checked_add(component.offset)?;
                match (component.genre, component.derived) {
                    (GENRE_DATA, Some(inner)) if component.rank == 0 => {
                        inner.add_copied(offset, parts, held)?;
                    }
                    (GENRE_DATA, inner) => {
                        if let Some(inner) = inner
                            && !inner.flag(NOTHING_TO_DESTROY)?
                        {
                            return None;
                        }
                        let moved = |part: ScalarRun| ScalarRun {
                            at: start + part.at,
                            ..part
                        };
                        parts.extend(component.copied_scalars()?.into_iter().map(moved));
                    }
                    (GENRE_ALLOCATABLE, None) => held.push(AllocatableComponent {
                        offset,
                        rank: component.rank,
                        element: Element::of(component.code_and_bytes()?.0)?,
                    }),
                    _ => return None,
                }
            }
            Some(())
        }
    }

    /// Returns whether no component is a procedure pointer; procedure components have a separate list.
    unsafe fn has_no_procedures(self) -> Option<bool> {
        unsafe {
            let procedures = constant_part(self.member(PROCEDURES)?, 7)?;
            Some(constant_int(constant_part(constant_part(procedures, 0)?, 1)?)? == 0)
        }
    }

    unsafe fn copied_scalars(self) -> Option<Vec<ScalarRun>> {
        let mut parts = Vec::new();
        unsafe {
            if !self.has_no_procedures()? {
                return None;
            }
            for entry in self.entries()? {
                parts.extend(Component::read(entry)?.copied_scalars()?);
            }
        }
        let numbers: u64 = parts.iter().map(|part: &ScalarRun| part.count).sum();
        (numbers <= COPIED_SCALARS_MAX).then_some(parts)
    }

    /// Returns the bytes of a variable.
    ///
    /// # Safety
    /// The module of the table is live.
    pub(super) unsafe fn size(self) -> Option<u64> {
        unsafe { constant_int(self.member(SIZE)?) }
    }

    /// Returns the offsets in a variable of the addresses that its destruction frees.
    ///
    /// # Safety
    /// The module of the table is live.
    pub(super) unsafe fn freed_offsets(self) -> Option<Vec<u64>> {
        unsafe {
            if !self.flag(NOTHING_TO_FINALISE)? {
                return None;
            }
            if self.flag(NOTHING_TO_DESTROY)? {
                return Some(Vec::new());
            }
            let mut offsets = Vec::new();
            for entry in self.entries()? {
                offsets.extend(Component::read(entry)?.freed_offsets()?);
            }
            Some(offsets)
        }
    }
}

impl Component {
    unsafe fn read(entry: LLVMValueRef) -> Option<Component> {
        unsafe {
            let own = |index| constant_part(entry, index);
            let derived = constant_part(own(DERIVED)?, 0)?;
            let rank = constant_int(own(COMPONENT_RANK)?)?;
            Some(Component {
                genre: constant_int(own(GENRE)?)?,
                category: constant_int(own(CATEGORY)?)?,
                kind: constant_int(own(KIND)?)?,
                rank,
                count: constant_element_count(own(BOUNDS)?, rank),
                offset: constant_int(own(OFFSET)?)?,
                derived: (LLVMIsNull(derived) == 0).then_some(Type(derived)),
            })
        }
    }

    /// Returns the offsets of freed addresses. An allocatable component of derived type may be polymorphic:
    /// the freed memory is known only at run time.
    unsafe fn freed_offsets(&self) -> Option<Vec<u64>> {
        match (self.genre, self.derived) {
            (GENRE_DATA, Some(derived)) => {
                let inner = unsafe { derived.freed_offsets()? };
                let is_plain = self.rank == 0 || inner.is_empty();
                is_plain.then(|| inner.iter().map(|at| self.offset + at).collect())
            }
            (GENRE_ALLOCATABLE, None) => {
                self.code_and_bytes()?;
                Some(vec![self.offset])
            }
            (GENRE_ALLOCATABLE | GENRE_AUTOMATIC, _) => None,
            _ => Some(Vec::new()),
        }
    }

    /// Returns the scalars that a component adds to a variable; an array of a derived type adds each scalar
    /// of each element.
    unsafe fn copied_scalars(&self) -> Option<Vec<ScalarRun>> {
        let count = self.count.filter(|_| self.genre == GENRE_DATA)?;
        let (one, size) = match self.derived {
            Some(derived) => unsafe { (derived.copied_scalars()?, derived.size()?) },
            None => {
                let (code, size) = self.code_and_bytes()?;
                (Element::of(code)?.parts().to_vec(), size)
            }
        };
        if let (None, [part]) = (self.derived, one.as_slice()) {
            let (at, count) = (self.offset, count * part.count);
            return Some(vec![ScalarRun { at, count, ..*part }]);
        }
        if count > COPIED_SCALARS_MAX {
            return None;
        }
        let moved = |index: u64| {
            let from = self.offset + index * size;
            one.iter().map(move |part| ScalarRun {
                at: from + part.at,
                ..part.clone()
            })
        };
        Some((0..count).flat_map(moved).collect())
    }

    /// Returns the descriptor's type code (`CFI_type_…`) and the bytes of an element: integers, reals,
    /// complex numbers and logicals (as integers of equal size).
    fn code_and_bytes(&self) -> Option<(u64, u64)> {
        let code = match (self.category, self.kind) {
            (0, 1) => 7,
            (0, 2) => 8,
            (0, 4) => 9,
            (0, 8) => 10,
            (2 | 3, 4) => 27,
            (2 | 3, 8) => 28,
            (5, 1) => 39,
            (5, 2) => 13,
            (5, 4) => 14,
            (5, 8) => 15,
            _ => return None,
        };
        match self.category {
            3 => Some((code + 7, 2 * self.kind)),
            _ => Some((code, self.kind)),
        }
    }
}

impl Host {
    /// Returns the default values of a variable of a type; `None` if a component is not supported.
    ///
    /// # Safety
    /// The table belongs to the module.
    pub(super) unsafe fn initial_values(&mut self, ty: Type) -> Option<Vec<DefaultValue>> {
        let mut found = Vec::new();
        unsafe { self.add_initial(ty, 0, &mut found)? };
        Some(found)
    }

    /// Adds the default values of a variable of a type at byte `start`.
    unsafe fn add_initial(
        &mut self,
        ty: Type,
        start: u64,
        found: &mut Vec<DefaultValue>,
    ) -> Option<()> {
        unsafe {
            if ty.flag(NOTHING_TO_INITIALISE)? {
                return Some(());
            }
            if !ty.has_no_procedures()? {
                return None;
            }
            for entry in ty.entries()? {
                let component = Component::read(entry)?;
                let offset = start.checked_add(component.offset)?;
                let value = match component.genre {
                    GENRE_DATA => default_value(entry)?,
                    GENRE_ALLOCATABLE => {
                        Some(self.unallocated_descriptor(&component, ALLOCATABLE)?)
                    }
                    GENRE_POINTER => match default_value(entry)? {
                        Some(value) => Some(value),
                        None => Some(self.unallocated_descriptor(&component, ATTRIBUTE_POINTER)?),
                    },
                    _ => return None,
                };
                match (value, component.derived) {
                    (Some(value), _) => {
                        let layout = LLVMGetModuleDataLayout(self.module);
                        let bytes = LLVMABISizeOfType(layout, LLVMGlobalGetValueType(value));
                        found.push(DefaultValue {
                            offset,
                            bytes,
                            value,
                        });
                    }
                    (None, Some(inner)) => {
                        let before = found.len();
                        self.add_initial(inner, offset, found)?;
                        if component.rank != 0 && found.len() > before {
                            return None;
                        }
                    }
                    (None, None) => {}
                }
            }
            Some(())
        }
    }

    /// Returns a constant global with the descriptor of an unallocated component.
    unsafe fn unallocated_descriptor(
        &mut self,
        component: &Component,
        attribute: u64,
    ) -> Option<LLVMValueRef> {
        let (code, bytes) = match (component.derived, attribute) {
            (None, _) => component.code_and_bytes()?,
            (Some(ty), ATTRIBUTE_POINTER) => (OF_DERIVED_TYPE, unsafe { ty.size()? }),
            (Some(_), _) => return None,
        };
        let rank = component.rank;
        let of = component
            .derived
            .map_or(String::new(), |ty| format!("_{}", unsafe { name_of(ty.0) }));
        let name = c_string(&format!("__gr_fortran_none_{rank}_{code}_{attribute}{of}"));
        unsafe {
            let made = LLVMGetNamedGlobal(self.module, name.as_ptr());
            if !made.is_null() {
                return Some(made);
            }
            let bits = |width| LLVMIntTypeInContext(self.ctx, width);
            let int = |width, value| LLVMConstInt(bits(width), value, 0);
            let dimension = |d| {
                let stride = if d == 0 { bytes } else { 0 };
                let mut members = [int(64, 1), int(64, 0), int(64, stride)];
                LLVMConstArray2(bits(64), members.as_mut_ptr(), 3)
            };
            let mut bounds: Vec<LLVMValueRef> = (0..rank).map(dimension).collect();
            let mut members = vec![
                LLVMConstNull(LLVMPointerTypeInContext(self.ctx, 0)),
                int(64, bytes),
                int(32, VERSION),
                int(8, rank),
                int(8, code),
                int(8, attribute),
                int(8, u64::from(component.derived.is_some())),
            ];
            if rank > 0 {
                let dimension = LLVMArrayType2(bits(64), 3);
                members.push(LLVMConstArray2(dimension, bounds.as_mut_ptr(), rank));
            }
            if let Some(ty) = component.derived {
                let mut lengths = [int(64, 0)];
                members.extend([ty.0, LLVMConstArray2(bits(64), lengths.as_mut_ptr(), 1)]);
            }
            let count = members.len() as u32;
            let contents = LLVMConstStructInContext(self.ctx, members.as_mut_ptr(), count, 0);
            let made = LLVMAddGlobal(self.module, LLVMTypeOf(contents), name.as_ptr());
            LLVMSetInitializer(made, contents);
            LLVMSetGlobalConstant(made, 1);
            LLVMSetLinkage(made, LLVMPrivateLinkage);
            Some(made)
        }
    }
}

/// Returns the number of elements within bounds; `None` if the bounds are not constant.
unsafe fn constant_element_count(bounds: LLVMValueRef, rank: u64) -> Option<u64> {
    /// Tag of a bound that is given as a number.
    const EXPLICIT: u64 = 2;
    if rank == 0 {
        return Some(1);
    }
    unsafe {
        let bounds = constant_contents(constant_part(bounds, 0)?)?;
        let bound = |dimension, side| {
            let value = constant_part(dimension, side)?;
            let is_number = constant_int(constant_part(value, 0)?)? == EXPLICIT;
            let value = constant_int(constant_part(value, 2)?)?;
            is_number.then_some(value as i64)
        };
        let mut count = 1u64;
        for at in 0..u32::try_from(rank).ok()? {
            let dimension = constant_part(bounds, at)?;
            let extent = bound(dimension, 1)?
                .checked_sub(bound(dimension, 0)?)?
                .checked_add(1)?;
            count = count.checked_mul(extent.max(0) as u64)?;
        }
        Some(count)
    }
}

/// Returns the default value of a component, if there is one; the outer `None` is an unsupported
/// initialiser.
unsafe fn default_value(entry: LLVMValueRef) -> Option<Option<LLVMValueRef>> {
    unsafe {
        let address = constant_part(constant_part(entry, INITIAL)?, 0)?;
        if LLVMIsNull(address) != 0 {
            return Some(None);
        }
        let is_expression = !LLVMIsAConstantExpr(address).is_null();
        if !is_expression || LLVMGetConstOpcode(address) != LLVMPtrToInt {
            return None;
        }
        let value = LLVMGetOperand(address, 0);
        constant_contents(value)?;
        Some(Some(value))
    }
}

/// Returns the initialiser of a constant global.
unsafe fn constant_contents(variable: LLVMValueRef) -> Option<LLVMValueRef> {
    unsafe {
        let is_variable = LLVMGetValueKind(variable) == LLVMValueKind::LLVMGlobalVariableValueKind;
        if !is_variable || LLVMIsGlobalConstant(variable) == 0 {
            return None;
        }
        let contents = LLVMGetInitializer(variable);
        (!contents.is_null()).then_some(contents)
    }
}
