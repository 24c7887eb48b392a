//! What global variables hold at start-up: which words of them lead where.

use crate::constraints::Solver;
use crate::seen::Seen;
use crate::unify::Target;
use gradus_ir::Symbol;

impl Solver<'_> {
    /// Reads the initial contents of the closure's variables.
    pub(crate) fn globals(&mut self) {
        for &global in self.closure.globals() {
            let start = self.global(global);
            let variable = &self.unit.globals[global];
            self.declare(start, variable.ty);
            for relocation in variable.init.iter().flat_map(|init| &init.relocations) {
                let target = match relocation.target {
                    Symbol::Func(func) => self.function(func),
                    Symbol::Global(to) => self.global(to),
                };
                let word = start.plus(relocation.offset_bytes as i64);
                let points = self.classes.pointee(word);
                self.classes.unify(points, target.plus(relocation.addend));
                self.note(word, Seen::POINTER);
            }
            if !variable.unread.is_empty() {
                self.unread(start, &variable.unread);
            }
        }
    }
    /// What a variable holds could not be read: any of what stands in it may be reached through any of its words.
    fn unread(&mut self, start: Target, named: &[Symbol]) {
        let unseen = self.unseen();
        self.classes.step(start, 1);
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
