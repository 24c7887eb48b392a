//! The statements of an iteration.

use super::{ARRAY_CELLS, ROW_CELLS, Reduction, View, Writer};

impl Writer {
    /// Returns an array index, from an iteration's induction variable.
    fn array_index(&mut self, view: &View) -> String {
        let index = &view.index;
        match self.random.below(8) {
            0 => {
                self.met("uniform read");
                self.random.below(8).to_string()
            }
            1 | 2 => {
                self.met("gather");
                format!("({index} * 7 + 3) % {ARRAY_CELLS}")
            }
            3 => {
                self.met("gather");
                format!("({index} + 1) % {ARRAY_CELLS}")
            }
            4 => {
                self.met("gather");
                format!("{index} / 3")
            }
            5 => {
                self.met("gather through memory");
                format!("at[{index}]")
            }
            _ => index.clone(),
        }
    }

    /// Returns a readable cell.
    pub(super) fn cell(&mut self, view: &View) -> String {
        let array = self.random.pick(&view.read).clone();
        let place = self.array_index(view);
        match array.as_str() {
            "x" => format!("x[({place}) % 8]"),
            _ => format!("{array}[{place}]"),
        }
    }

    /// Returns a number within ±2.
    pub(super) fn number(&mut self, view: &View, depth: u32) -> String {
        if depth == 0 {
            return match self.random.below(5) {
                0 | 1 if !view.numbers.is_empty() => self.random.pick(&view.numbers).clone(),
                _ => self.cell(view),
            };
        }
        let a = self.number(view, depth - 1);
        match self.random.below(8) {
            0 => format!("sin({a})"),
            1 => format!("cos({a})"),
            2 => format!("tanh({a})"),
            3 => format!("sqrt(1.5 + sin({a}))"),
            4 => format!("({a} > 0.2 ? {a} : 0.5 * {a})"),
            _ => {
                let b = self.number(view, depth - 1);
                match self.one_in(2) {
                    true => format!("(0.5 * {a} * {b})"),
                    false => format!("(0.6 * {a} - 0.4 * {b})"),
                }
            }
        }
    }

    /// Emits the statements of an iteration; finally each private cell is written.
    pub(super) fn iteration(&mut self, view: &mut View, depth: u32) {
        for _ in 0..1 + self.random.below(4) {
            self.statement(view, depth);
        }
        let updates = self.one_in(3);
        for cell in view.own.clone() {
            let value = self.number(view, 1);
            let line = match updates {
                true => format!("{cell} = 0.5 * {cell} + 0.4 * sin({value});"),
                false => format!("{cell} = 0.8 * sin({value});"),
            };
            self.line(line);
        }
        if updates {
            self.met("update in place");
        }
        if let Some((number, reduction)) = view.reduced.clone() {
            let value = self.number(view, 2);
            let cell = self.cell(view);
            self.line(match reduction {
                Reduction::Sum => format!("{number} += 0.05 * {value};"),
                Reduction::Product => format!("{number} *= 1 + 0.02 * {value} * {cell};"),
                Reduction::Greatest => {
                    format!("if ({cell} * {value} > {number}) {number} = {cell} * {value};")
                }
                Reduction::Least => {
                    format!("if ({cell} - {value} < {number}) {number} = {cell} - {value};")
                }
            });
        }
    }

    fn statement(&mut self, view: &mut View, depth: u32) {
        match self.random.below(if depth == 0 { 8 } else { 14 }) {
            0 => {
                let name = self.name("v");
                let value = self.number(view, 2);
                self.line(format!("double {name} = {value};"));
                view.numbers.push(name);
            }
            1 => self.add(view),
            2 => self.private_array(view),
            3 => self.private_block(view),
            4 | 5 => self.call(view),
            6 => self.fill(view),
            7 => self.locked(view),
            8 | 9 => self.branch(view, depth),
            10 | 11 => self.inner_loop(view, depth),
            12 => self.while_loop(view),
            _ => self.nested(view),
        }
    }

    /// Emits an add to a shared sum.
    fn add(&mut self, view: &View) {
        if !view.adds {
            return;
        }
        let value = self.number(view, 1);
        match self.one_in(2) {
            true => {
                self.met("atomic add");
                let place = match self.one_in(2) {
                    true => format!("{} & 3", view.index),
                    false => "2".into(),
                };
                self.line(format!(
                    "#pragma omp atomic\nsum[{place}] += 0.05 * {value};"
                ));
            }
            false => {
                self.met("critical add");
                self.line(format!(
                    "#pragma omp critical\n{{ crit += 0.05 * {value}; }}"
                ));
            }
        }
    }

    fn private_array(&mut self, view: &mut View) {
        self.met("array of its own");
        let (name, k) = (self.name("own"), self.name("k"));
        let value = self.number(view, 1);
        let array = self.random.pick(&view.read).clone();
        let index = &view.index;
        let gathered = match array.as_str() {
            "x" => format!("x[({index} + {k}) % 8]"),
            _ => format!("{array}[({index} * 5 + {k}) % {ARRAY_CELLS}]"),
        };
        self.line(format!(
            "double {name}[4]; for (int {k} = 0; {k} < 4; {k}++) {name}[{k}] = 0.5 * {gathered} + 0.2 * ({value});"
        ));
        if self.one_in(2) {
            self.line(format!(
                "for (int {k} = 1; {k} < 4; {k}++) {name}[{k}] = 0.6 * {name}[{k}] * {name}[{k} - 1] + 0.2 * {gathered};"
            ));
        }
        for k in 0..4 {
            view.numbers.push(format!("{name}[{k}]"));
        }
    }

    /// Emits memory allocated and freed by an iteration.
    fn private_block(&mut self, view: &mut View) {
        self.met("block of its own");
        let name = self.name("block");
        let (a, b) = (self.number(view, 1), self.number(view, 1));
        let result = self.name("v");
        self.line(format!(
            "double *{name} = malloc(3 * sizeof(double)); {name}[0] = {a}; {name}[1] = {b}; {name}[2] = 0.5 * {name}[0] * {name}[1];\n\
             double {result} = 0.4 * {name}[2] + 0.3 * {name}[0]; free({name});"
        ));
        view.numbers.push(result);
    }

    fn array_of(&mut self, view: &View) -> String {
        let long: Vec<&String> = view.read.iter().filter(|a| *a != "x").collect();
        self.random.pick(&long).to_string()
    }

    /// Emits a call that returns a number.
    fn call(&mut self, view: &mut View) {
        let seed = self.seed;
        let array = self.array_of(view);
        let index = view.index.clone();
        let number = self.number(view, 1);
        let name = self.name("v");
        let call = match self.random.below(4) {
            0 => {
                self.met("recursive function");
                format!("deeper_{seed}({array}, {index} & 3, {index}, {number})")
            }
            1 => {
                self.met("function with a loop");
                format!("rowsum_{seed}({array}, {index}, {number})")
            }
            _ => {
                self.met("function");
                let other = self.array_of(view);
                format!("weighted_{seed}({array}, {other}, {index}, {number})")
            }
        };
        self.line(format!("double {name} = {call};"));
        view.numbers.push(name);
    }

    /// Emits a call that writes memory of the iteration.
    fn fill(&mut self, view: &mut View) {
        self.met("function that fills");
        let seed = self.seed;
        let array = self.array_of(view);
        let index = view.index.clone();
        let number = self.number(view, 1);
        let target = match view.own.first() {
            Some(cell) if self.one_in(2) => format!("&{cell}"),
            _ => {
                let name = self.name("w");
                self.line(format!("double {name} = 0.3;"));
                view.numbers.push(name.clone());
                format!("&{name}")
            }
        };
        self.line(format!(
            "fill_{seed}({target}, {array}, {index}, {number});"
        ));
    }

    fn locked(&mut self, view: &View) {
        if !view.adds {
            return;
        }
        self.met("function that locks");
        let seed = self.seed;
        let number = self.number(view, 1);
        self.line(format!("locked_{seed}(&crit, 0.03 * {number});"));
    }

    fn branch(&mut self, view: &View, depth: u32) {
        self.met("branch");
        let index = &view.index;
        let condition = match self.random.below(3) {
            0 => format!("{index} % 3 == 1"),
            1 => format!("at[{index}] > 4"),
            _ => format!("{} > 0.1", self.cell(view)),
        };
        self.line(format!("if ({condition}) {{"));
        self.nested_statements(view, depth);
        if self.one_in(2) {
            self.line("} else {");
            self.nested_statements(view, depth);
        }
        self.line("}");
    }

    /// Emits statements whose definitions go out of scope; they end in a write.
    fn nested_statements(&mut self, view: &View, depth: u32) {
        let mut inner = view.clone();
        inner.row = None;
        for _ in 0..1 + self.random.below(2) {
            self.statement(&mut inner, depth - 1);
        }
        if let Some(cell) = inner.own.first().cloned() {
            let value = self.number(&inner, 1);
            self.line(format!("{cell} = 0.4 * {cell} + 0.5 * sin({value});"));
        }
    }

    fn inner_loop(&mut self, view: &View, depth: u32) {
        self.met("inner loop");
        let k = self.name("k");
        let end = match self.one_in(3) {
            true => format!("(at[{}] & 3)", view.index),
            false => "3".into(),
        };
        self.line(format!("for (int {k} = 0; {k} < {end}; {k}++) {{"));
        let mut inner = view.clone();
        inner.index = format!("(({} + {k}) % {ARRAY_CELLS})", view.index);
        // The cells of a row are indexed by the outer induction variable, indirectly read arrays by both.
        self.nested_statements(&inner, depth);
        self.line("}");
    }

    fn while_loop(&mut self, view: &mut View) {
        self.met("while loop");
        let name = self.name("v");
        let value = self.number(view, 1);
        self.line(format!(
            "double {name} = 1.1 + sin({value}); while ({name} > 0.4) {name} = {name} * {name} * 0.3 + 0.1 * sin({name});"
        ));
        view.numbers.push(name);
    }

    /// Emits a parallel loop over the iteration's row.
    fn nested(&mut self, view: &mut View) {
        let Some(row) = view.row.clone() else {
            // Not an error: the iteration has no row.
            return;
        };
        self.met("nested loop");
        let j = self.name("j");
        let inner = View {
            index: format!("(({} * {ROW_CELLS} + {j}) % {ARRAY_CELLS})", view.index),
            own: Vec::new(),
            adds: false,
            reduced: None,
            row: None,
            ..view.clone()
        };
        let value = self.number(&inner, 2);
        self.line(format!(
            "#pragma omp parallel for\nfor (int {j} = 0; {j} < {ROW_CELLS}; {j}++) ({row})[{j}] = 0.7 * ({value});"
        ));
    }
}
