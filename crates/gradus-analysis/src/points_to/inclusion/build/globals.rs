//! Constraints of global variables: initial values and stores by other code.

use crate::points_to::folds::Fold;
use crate::points_to::inclusion::build::Builder;
use crate::points_to::inclusion::constraints::{Constraint, NodeId};
use crate::points_to::inclusion::objects::{EXTERNAL, ObjectId, ObjectKey};
use crate::points_to::initializers::is_function_or_table;
use crate::types::lattice::CellType;
use gradus_ir::{GlobalId, Linkage, Symbol, Type, TypeId, Unit};

impl Builder<'_> {
    /// Records the declared type of an object.
    pub fn declare(&mut self, object: ObjectId, ty: TypeId) {
        let declared = &mut self.objects.get_mut(object).declared;
        if !declared.contains(&(0, ty)) {
            declared.push((0, ty));
        }
    }
    /// Adds the initial contents of the call graph's globals.
    pub(super) fn add_globals(&mut self) {
        for &global in self.closure.globals() {
            let object = self.objects.of(ObjectKey::Global(global));
            let variable = &self.unit.globals[global];
            self.declare(object, variable.ty);
            self.objects.get_mut(object).has_unknown_content =
                !self.has_known_content(global) && may_hold_pointers(self.unit, variable.ty);
            let pointer = self.program.node();
            self.program.address(pointer, object, 0);
            for relocation in variable.init.iter().flat_map(|init| &init.relocations) {
                let at = relocation.offset_bytes as i64;
                let seen = (pointer, at, CellType::POINTER);
                self.program.evidence.cells.push(seen);
                let (target, offset) = self.symbol(relocation.target, relocation.addend);
                self.store_address(pointer, at, target, offset);
                // Initial functions do not bound the callees.
                if !is_function_or_table(self.unit, relocation.target) {
                    self.objects.get_mut(object).initial_pointers.insert(at);
                }
            }
            self.exchange_elements(object, variable.ty);
            if !variable.unparsed_symbols.is_empty() {
                self.add_unparsed(pointer, &variable.unparsed_symbols);
            }
        }
    }
    /// Other code may exchange the pointers in an array that it sets.
    fn exchange_elements(&mut self, object: ObjectId, ty: TypeId) {
        let data = self.objects.get_mut(object);
        if let Type::Array { elem, len: 2.. } = *self.unit.types.get(ty)
            && data.has_unknown_content
            && !data.initial_pointers.is_empty()
        {
            let end = self.unit.layout.size_bytes(self.unit, ty);
            data.folds.insert(Fold {
                first: 0,
                end: i64::try_from(end).ok(),
                stride: self.unit.layout.size_bytes(self.unit, elem),
            });
        }
    }
    fn symbol(&mut self, symbol: Symbol, addend: i64) -> (ObjectId, i64) {
        match symbol {
            Symbol::Func(func) => (self.objects.of(ObjectKey::Function(func)), 0),
            Symbol::Global(to) => (self.objects.of(ObjectKey::Global(to)), addend),
        }
    }
    fn store_address(&mut self, ptr: NodeId, bytes: i64, object: ObjectId, offset: i64) {
        let from = self.program.node();
        self.program.address(from, object, offset);
        self.program.push(Constraint::Store {
            ptr,
            bytes,
            from,
            tag: None,
        });
    }
    /// An initializer that could not be read holds any of its symbols anywhere.
    fn add_unparsed(&mut self, pointer: NodeId, named: &[Symbol]) {
        self.program.push(Constraint::Escape { node: pointer });
        self.store_address(pointer, 0, EXTERNAL, 0);
        for &symbol in named {
            let (object, _) = self.symbol(symbol, 0);
            self.store_address(pointer, 0, object, 0);
        }
    }
    /// Returns true if the initializer and the bodies of the call graph are the only sources of pointers in a
    /// variable.
    fn has_known_content(&self, global: GlobalId) -> bool {
        let variable = &self.unit.globals[global];
        let closed = variable.constant || variable.linkage == Linkage::Internal;
        let by_others = |by: &Option<Symbol>| match by {
            Some(Symbol::Func(func)) => !self.closure.contains(*func),
            _ => true,
        };
        let how = self.unit.address_escapes(global);
        let given = how.is_some_and(|how| {
            let stores = how.pointers_stored_by.iter().chain(&how.stored_by);
            stores.clone().any(by_others)
        });
        variable.defined && variable.unparsed_symbols.is_empty() && closed && !given
    }
}

/// Returns true if other code may store pointers in a variable of this type: a member is a pointer, an integer of this
/// size, or bytes.
fn may_hold_pointers(unit: &Unit, ty: TypeId) -> bool {
    match unit.types.get(ty) {
        Type::Int(bits) => *bits == 8 || u64::from(*bits) >= unit.layout.pointer_bytes * 8,
        Type::Float(_) => false,
        Type::Array { elem, .. } | Type::Vector { elem, .. } => may_hold_pointers(unit, *elem),
        Type::Struct { fields, .. } => fields.iter().any(|&field| may_hold_pointers(unit, field)),
        _ => true,
    }
}
