//! Initial values of globals: alias-set constraints of initializers and their relocations.

use crate::points_to::alias_set_solver::Solver;
use crate::points_to::union_find::NodeOffset;
use crate::types::lattice::CellType;
use gradus_ir::{GlobalId, Symbol, Unit};

impl Solver<'_> {
    /// Adds the initial contents of the call graph's globals.
    pub(crate) fn add_initializers(&mut self) {
        for &global in self.closure.globals() {
            let start = self.global(global);
            let variable = &self.unit.globals[global];
            self.declare(start, variable.ty);
            let is_set = self.is_set_externally(global);
            for relocation in variable.init.iter().flat_map(|init| &init.relocations) {
                if is_set && is_function_or_table(self.unit, relocation.target) {
                    self.note(
                        start.plus(relocation.offset_bytes as i64),
                        CellType::POINTER,
                    );
                    continue;
                }
                let target = match relocation.target {
                    Symbol::Func(func) => self.function(func),
                    Symbol::Global(to) => self.global(to),
                };
                let word = start.plus(relocation.offset_bytes as i64);
                let points = self.classes.pointee(word);
                self.classes.unify(points, target.plus(relocation.addend));
                self.note(word, CellType::POINTER);
            }
            if !variable.unparsed_symbols.is_empty() {
                self.add_unreadable_initializer(start, &variable.unparsed_symbols);
            }
        }
    }
    /// Returns true if functions outside the call graph store pointers into a variable.
    fn is_set_externally(&self, global: GlobalId) -> bool {
        let outside = |by: &Option<Symbol>| match by {
            Some(Symbol::Func(func)) => !self.closure.contains(*func),
            _ => true,
        };
        let how = self.unit.address_escapes(global);
        !self.unit.globals[global].constant
            && how.is_some_and(|how| how.pointers_stored_by.iter().any(outside))
    }
    /// Handles a variable with an unreadable initializer: any symbol in it is reachable through any cell.
    fn add_unreadable_initializer(&mut self, start: NodeOffset, named: &[Symbol]) {
        let unseen = self.unseen();
        self.classes.add_stride(start, 1);
        let points = self.classes.pointee(start);
        self.classes.unify(points, unseen);
        for symbol in named {
            let target = match *symbol {
                Symbol::Func(func) => self.function(func),
                Symbol::Global(to) => self.global(to),
            };
            self.classes.unify(target, unseen);
        }
    }
}

/// Returns true if a symbol is a function or a constant table of functions. If external code may set the pointer, its
/// initial value does not bound the callees: any function of the type is possible.
pub(crate) fn is_function_or_table(unit: &Unit, symbol: Symbol) -> bool {
    match symbol {
        Symbol::Func(_) => true,
        Symbol::Global(table) => {
            let table = &unit.globals[table];
            table.constant
                && table
                    .initial_symbols()
                    .any(|named| matches!(named, Symbol::Func(_)))
        }
    }
}
