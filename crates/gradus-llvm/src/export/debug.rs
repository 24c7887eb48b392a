//! Debug information: locations, subprograms of derivatives, debug records.
//!
//! In a function with a subprogram, an op keeps its location if the location's root scope is the
//! subprogram. Any other location counts as inlined into the subprogram; a derivative thus shows the lines
//! of its primal.
use super::Exporter;
use super::structure::Structure;
use crate::host::ffi::*;
use gradus_ir::{Entity, LocId, MetaId, Op};
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

unsafe extern "C" {
    fn gr_derive_subprogram(from: LLVMMetadataRef, name: *const c_char) -> LLVMMetadataRef;
    fn gr_location(
        ctx: LLVMContextRef,
        line: u32,
        column: u32,
        scope: LLVMMetadataRef,
        at: LLVMMetadataRef,
    ) -> LLVMMetadataRef;
    fn gr_location_inlined_at(loc: LLVMMetadataRef, at: LLVMMetadataRef) -> LLVMMetadataRef;
    fn gr_loop_metadata_for(loop_: LLVMMetadataRef, subprogram: LLVMMetadataRef)
    -> LLVMMetadataRef;
    fn gr_weights_fit(node: LLVMMetadataRef, terminator: LLVMValueRef) -> i32;
    fn gr_describe_parameters(function: LLVMValueRef, origin: LLVMValueRef, at: LLVMMetadataRef);
    fn gr_location_root(loc: LLVMMetadataRef) -> LLVMMetadataRef;
    fn gr_copy_debug_records(
        from: LLVMValueRef,
        to: LLVMValueRef,
        map: extern "C" fn(*mut c_void, LLVMValueRef) -> LLVMValueRef,
        data: *mut c_void,
    );
}

impl Exporter<'_, '_> {
    /// Creates the subprogram of a derivative from the subprogram of its primal, unless the primal is external.
    pub(super) fn derive_subprogram(&self, raw: LLVMValueRef, origin: LLVMValueRef) {
        unsafe {
            let from = LLVMGetSubprogram(origin);
            if from.is_null() {
                // Not an error: the program has no debug information.
                return;
            }
            let derived = gr_derive_subprogram(from, c_string(&name_of(raw)).as_ptr());
            if !derived.is_null() {
                LLVMSetSubprogram(raw, derived);
            }
        }
    }

    /// Returns LLVM's location of `id`, with the unit's inlining chain; null if the host has none.
    fn location(&mut self, id: LocId) -> LLVMMetadataRef {
        let unit = self.unit;
        let mut chain = Vec::new();
        let mut at = Some(id);
        while let Some(here) = at.filter(|l| !self.locations.contains_key(l)) {
            chain.push(here);
            at = unit.locations[here].inlined_at;
        }
        for here in chain.into_iter().rev() {
            let location = &unit.locations[here];
            let outer = location
                .inlined_at
                .and_then(|o| self.locations.get(&o).copied())
                .unwrap_or(null_mut());
            let own = location.host.and_then(|n| self.host.tables.metadata.get(n));
            let made = match own {
                None => null_mut(),
                Some(own) if unsafe { LLVMDILocationGetInlinedAt(own) } == outer => own,
                Some(own) => unsafe {
                    let scope = LLVMDILocationGetScope(own);
                    let (line, column) = (location.span.line, location.span.column);
                    gr_location(self.host.ctx, line, column, scope, outer)
                },
            };
            self.locations.insert(here, made);
        }
        self.locations[&id]
    }
}

impl Structure<'_, '_, '_> {
    /// Finds the function's subprogram, and the call site of inlined locations and of calls without a
    /// location: the line of the function, which a debugger shows for the outer frame.
    pub(super) fn find_subprogram(&mut self) {
        unsafe {
            self.subprogram = LLVMGetSubprogram(self.function);
            if !self.subprogram.is_null() {
                let ctx = self.exporter.host.ctx;
                let line = LLVMDISubprogramGetLine(self.subprogram);
                self.call_site = gr_location(ctx, line, 0, self.subprogram, null_mut());
            }
        }
    }

    /// Sets the location of an instruction; none in a function without a subprogram. LLVM requires a
    /// location on a call to a function with a subprogram.
    pub(super) fn set_location(&mut self, made: LLVMValueRef, loc: Option<LocId>) {
        if self.subprogram.is_null() || unsafe { LLVMIsAInstruction(made) }.is_null() {
            return;
        }
        let location = match loc {
            Some(id) => self.exporter.location(id),
            None => null_mut(),
        };
        let location = match location.is_null() {
            true if !calls_fn_with_subprogram(made) => return,
            true => self.call_site,
            false if unsafe { gr_location_root(location) } == self.subprogram => location,
            false => unsafe { gr_location_inlined_at(location, self.call_site) },
        };
        unsafe { LLVMInstructionSetDebugLoc(made, location) };
    }

    /// Attaches an op's metadata to an instruction. Metadata that is valid only in the op's original
    /// function is dropped or adapted: assignment ids, locations in loop metadata, branch weights of other
    /// branches.
    pub(super) fn set_meta(&mut self, op: Op, made: LLVMValueRef, meta: MetaId) {
        let origins = self.exporter.host.tables.origins.get(&self.id);
        let at_home = origins
            .and_then(|o| o.get(op.index()))
            .is_some_and(|o| !o.is_null());
        let (prof, assign, round) = *self.kinds.get_or_insert_with(|| {
            let kind = |name| self.exporter.metadata_kind(name);
            (kind("prof"), kind("DIAssignID"), kind("llvm.loop"))
        });
        for &(kind, node) in self.exporter.meta(meta).iter() {
            unsafe {
                let branches =
                    !LLVMIsATerminatorInst(made).is_null() && LLVMIsAInvokeInst(made).is_null();
                if kind == assign && !at_home
                    || kind == prof && branches && gr_weights_fit(node, made) == 0
                {
                    continue;
                }
                let node = if kind == round {
                    gr_loop_metadata_for(node, self.subprogram)
                } else {
                    node
                };
                LLVMSetMetadata(
                    made,
                    kind,
                    LLVMMetadataAsValue(self.exporter.host.ctx, node),
                );
            }
        }
    }

    /// Describes the parameters of a derivative by the variables of its primal.
    pub(super) fn describe_parameters(&self) {
        let unit = self.exporter.unit;
        let origin = unit.functions[self.id]
            .derived_from
            .and_then(|f| self.exporter.host.tables.function(f));
        let Some(origin) = origin.filter(|_| !self.subprogram.is_null()) else {
            // Not an error: the function is no derivative, or has no debug information.
            return;
        };
        unsafe {
            if LLVMIsDeclaration(origin) == 0 && !LLVMGetSubprogram(origin).is_null() {
                gr_describe_parameters(self.function, origin, self.call_site);
            }
        }
    }

    /// Copies the debug records in front of an op of a function that is rebuilt in place.
    pub(super) fn copy_debug_records(&mut self, op: Op, made: LLVMValueRef) {
        let tables = &self.exporter.host.tables;
        let Some(described) = tables.debug_records.get(&(self.id, op)) else {
            // Not an error: no debug records preceded the op.
            return;
        };
        if self.subprogram.is_null() || !self.made[op.index()].is_null() {
            return;
        }
        for records in described {
            let pairs = records.values.iter();
            let mut now: HashMap<LLVMValueRef, LLVMValueRef> = pairs
                .map(|(old, value)| (*old, self.values[value.index()]))
                .collect();
            unsafe { gr_copy_debug_records(records.before, made, look_up, (&raw mut now).cast()) };
        }
    }
}

/// Returns whether an instruction calls a function with a subprogram.
fn calls_fn_with_subprogram(made: LLVMValueRef) -> bool {
    unsafe {
        if LLVMIsACallInst(made).is_null() && LLVMIsAInvokeInst(made).is_null() {
            return false;
        }
        let callee = LLVMGetCalledValue(made);
        !LLVMIsAFunction(callee).is_null() && !LLVMGetSubprogram(callee).is_null()
    }
}

extern "C" fn look_up(map: *mut c_void, old: LLVMValueRef) -> LLVMValueRef {
    let map = unsafe { &*map.cast::<HashMap<LLVMValueRef, LLVMValueRef>>() };
    if !unsafe { LLVMIsAArgument(old) }.is_null() {
        return old;
    }
    map.get(&old).copied().unwrap_or(null_mut())
}
