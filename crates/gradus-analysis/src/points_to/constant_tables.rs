//! Null function pointers: slots in compiler-emitted constant tables, and callbacks without assignments. No
//! call goes through a null slot. Also recognises type-name globals (Itanium type info).

use crate::points_to::alias_set_solver::Solver;
use crate::points_to::alias_sets::MemoryOrigin;
use crate::points_to::union_find::{NodeOffset, NodeState};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{GlobalId, Linkage, Relocation, Symbol, Unit};

/// Size of a pointer in bytes.
const POINTER_BYTES: usize = 8;

impl Solver<'_> {
    /// Returns true if a location lies only in constants that hold null there. Example: the drop slot of a
    /// Rust vtable for a type without a destructor.
    pub fn is_null_slot(&mut self, place: NodeOffset) -> bool {
        let at = self.classes.find(place);
        let origins = self.classes.content(place).origins.clone();
        let constants = origins.iter().map(|origin| match origin {
            MemoryOrigin::Global(global) => self.is_null_at(*global, at),
            _ => false,
        });
        let constants: Vec<bool> = constants.collect();
        !constants.is_empty() && constants.into_iter().all(|is_null| is_null)
    }
    /// Returns true if an address without known targets can only be null. The program allocated all memory
    /// that may hold the address and stores no address there. An address outside memory is a constant, or
    /// an argument that is null in every call.
    pub fn is_only_null(&mut self, address: NodeOffset) -> bool {
        let root = self.classes.find(address).node;
        for node in 0..self.classes.len() as u32 {
            if !self.classes.is_root(node) {
                continue;
            }
            let cells = self.classes.root_content(node).cells.values();
            let points: Vec<NodeOffset> = cells.filter_map(|cell| cell.target).collect();
            let holds = points
                .into_iter()
                .any(|to| self.classes.find(to).node == root);
            if holds && !self.is_stored_in_call_graph(self.classes.root_content(node)) {
                return false;
            }
        }
        true
    }
    /// Returns true if functions of the call graph stored all pointers in memory of an alias set, or if the
    /// pointers are initial values.
    fn is_stored_in_call_graph(&self, class: &NodeState) -> bool {
        let in_sight = |origin: &MemoryOrigin| match *origin {
            MemoryOrigin::Alloca(..) => true,
            MemoryOrigin::Heap(func, op) => {
                let body = self.unit.functions[func].body.as_deref();
                let callee = body.and_then(|body| self.unit.callee(body, op));
                let known = callee.and_then(|callee| self.unit.known(callee));
                matches!(known, Some(ExternalFn::Memory(_)))
            }
            MemoryOrigin::Global(global) => self.is_private_global(global),
            _ => false,
        };
        !class.escaped && !class.origins.is_empty() && class.origins.iter().all(in_sight)
    }
    /// Returns true if only functions of the call graph store pointers into a variable after its
    /// initialisation.
    fn is_private_global(&self, global: GlobalId) -> bool {
        let variable = &self.unit.globals[global];
        let closed = variable.constant || variable.linkage == Linkage::Internal;
        let by_others = |by: &Option<Symbol>| match by {
            Some(Symbol::Func(func)) => !self.closure.contains(*func),
            _ => true,
        };
        let how = self.unit.address_escapes(global);
        let given = how.is_some_and(|how| {
            how.pointers_stored_by
                .iter()
                .chain(&how.stored_by)
                .any(by_others)
        });
        variable.defined && variable.unparsed_symbols.is_empty() && closed && !given
    }
    /// Returns true if a constant holds null in every cell that may be `at`. Constants beyond `SIZE_MAX`
    /// bytes are not searched.
    fn is_null_at(&mut self, global: GlobalId, at: NodeOffset) -> bool {
        const SIZE_MAX: usize = 4096;
        let variable = &self.unit.globals[global];
        let init = (variable.init.as_ref()).filter(|_| variable.constant && variable.defined);
        let Some(init) = init.filter(|init| init.bytes.len() <= SIZE_MAX) else {
            return false;
        };
        let start = self.global(global);
        let last = (init.bytes.len() + 1).saturating_sub(POINTER_BYTES);
        let mut words = (0..last).filter(|o| self.classes.find(start.plus(*o as i64)) == at);
        let is_null = |offset: usize| {
            let word = offset..offset + POINTER_BYTES;
            let meets = |r: &Relocation| {
                (r.offset_bytes as usize) < word.end
                    && word.start < r.offset_bytes as usize + POINTER_BYTES
            };
            init.bytes[word.clone()].iter().all(|byte| *byte == 0)
                && !init.relocations.iter().any(meets)
        };
        words.all(is_null)
    }
}

/// Returns true if a global is a type-info object (Itanium's `_ZTI`). Type info holds no numbers, and only
/// throwing and catching code reads it. A cell that may hold a type-info address, such as the manager slot
/// of a `std::function`, reveals nothing about the targets of the cell's pointers.
pub(crate) fn is_type_info(unit: &Unit, global: GlobalId) -> bool {
    let variable = &unit.globals[global];
    variable.constant && variable.name.starts_with("_ZTI")
}
