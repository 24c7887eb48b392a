//! Scopes: tasks parallel to their parent, nested tasks, task loops.

use super::{CellAccess, Cells, Writer};

impl Writer {
    /// Emits a scope with some tasks, and statements parallel to them.
    pub(super) fn scope(&mut self, view: &CellAccess, depth: u32) {
        let gives = self.one_in(3);
        let result = self.name();
        let visible = self.values.len();
        match gives {
            true => {
                self.met("scope with a result");
                self.line(format!("{result} = scope -> i64 {{"));
            }
            false => self.line("scope {"),
        }
        self.tasks(view, depth, true);
        let value = if gives { self.value() } else { String::new() };
        self.line(format!("yield {value}\n}}"));
        self.values.truncate(visible);
        if gives {
            self.values.push(result);
        }
    }

    /// Emits tasks in the enclosing scope, and statements between them. A task's cells are available again
    /// after the sync.
    fn tasks(&mut self, view: &CellAccess, depth: u32, nests: bool) {
        let mut left = view.own.clone();
        for _ in 0..1 + self.random.below(4) {
            if left.cells < 2 {
                break;
            }
            let cells = 1 + self.random.below(left.cells / 2);
            let (own, rest) = self.split(&left, cells);
            self.task(view, depth, own, nests);
            left = rest.unwrap_or(left);
            let beside = CellAccess {
                own: left.clone(),
                repeated: true,
                ..view.clone()
            };
            self.block(&beside, depth - 1);
            if self.one_in(3) {
                self.met("sync");
                self.line("sync");
                left = view.own.clone();
            }
        }
    }

    fn task(&mut self, view: &CellAccess, depth: u32, own: Cells, nests: bool) {
        self.met("task");
        let (mut words, mut operands) = (String::new(), Vec::new());
        if self.one_in(4) {
            self.met("task on a condition");
            words.push_str("when ");
            operands.push(self.condition());
        }
        if self.one_in(8) {
            self.met("task that stays serial inside");
            words.push_str("serial ");
            operands.push(self.condition());
        }
        self.line(format!("spawn {words}{} {{", operands.join(", ")));
        let visible = self.values.len();
        let part = view.subview(own, None, 1);
        self.block(&part, depth - 1);
        if nests && part.own.cells >= 2 && depth > 1 && self.one_in(3) {
            self.met("task that spawns");
            self.tasks(&part, depth - 1, false);
        }
        self.line("yield\n}");
        self.values.truncate(visible);
    }

    /// Emits a scope with a loop whose iterations each spawn a task; some loops carry a number.
    pub(super) fn loop_of_tasks(&mut self, view: &CellAccess, depth: u32) {
        self.met("loop of tasks");
        let cut = self.distribution(view);
        let extent = self.extent(cut.count);
        let (_, rest) = self.split(&view.own, cut.count * cut.cells_per_iteration);
        let carries = self.one_in(3);
        let [index, carried, result] = [0; 3].map(|_| self.name());
        let start = self.value();
        self.line("scope {");
        match carries {
            true => self.line(format!(
                "{result} = for {index} < {extent} iter({carried} = {start}) {{"
            )),
            false => self.line(format!("for {index} < {extent} {{")),
        }
        let visible = self.values.len();
        self.values.push(index.clone());
        if carries {
            self.values.push(carried);
            self.arithmetic();
        }
        let own = self.iteration_cells(&view.own, &index, cut);
        let next = self.value();
        self.line("spawn {");
        let part = view.subview(own, rest, cut.count);
        self.region(&part, depth - 1);
        self.line("}");
        match carries {
            true => self.line(format!("yield {next}\n}}")),
            false => self.line("yield\n}"),
        }
        self.values.truncate(visible);
        self.line("yield\n}");
    }
}
