//! Statements of random C programs: assignments, branches, loops, exits.

use super::c::Writer;

impl Writer<'_> {
    /// Emits a few statements; their declarations stay visible.
    pub fn block(&mut self, depth: u32) {
        for _ in 0..=self.random.below(5) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement(depth);
        }
    }

    /// Emits a block in braces.
    fn scope(&mut self, depth: u32) {
        let mark = self.mark();
        self.block(depth);
        self.back(&mark);
        self.line("}");
    }

    fn statement(&mut self, depth: u32) {
        match self.random.below(if depth == 0 { 14 } else { 26 }) {
            0..=2 => self.assign(),
            3 => self.declare(),
            4 | 5 => self.store(),
            6 | 7 => self.integer(),
            8..=11 => self.memory(),
            12 => self.exit(),
            13 => self.guarded(),
            14..=16 => self.branch(depth),
            17 => self.choice(depth),
            18..=21 => self.counted(depth),
            22 | 23 => self.conditional_loop(depth),
            _ => self.simple_loop(),
        }
    }

    fn assign(&mut self) {
        let place = self.random.pick(&self.assignable).clone();
        let value = self.bounded();
        let keep = self.chance(2);
        self.line(match keep {
            true => format!("{place} = 0.5 * {place} + 0.4 * ({value});"),
            false => format!("{place} = {value};"),
        });
    }

    fn declare(&mut self) {
        let name = self.name("v");
        let value = self.bounded();
        self.line(format!("double {name} = {value};"));
        self.variable(name);
    }

    fn store(&mut self) {
        let cell = self.cell();
        let value = self.bounded();
        self.note(match cell.starts_with("x[") {
            true => "update of x in place",
            false => "store",
        });
        self.line(format!("{cell} = {value};"));
    }

    fn integer(&mut self) {
        let name = self.name("k");
        let (a, b) = (self.int(), self.int());
        let op = *self.random.pick(&["+", "*", "^", "-"]);
        self.line(format!("int {name} = ({a} {op} {b}) & 15;"));
        self.ints.push(name);
    }

    /// Emits a quotient or a root at an excluded point.
    fn guarded(&mut self) {
        self.note("excluded point");
        let (z, name) = (self.name("z"), self.name("v"));
        let (a, b, k) = (self.operand(), self.operand(), self.int());
        match self.random.below(3) {
            0 => {
                self.line(format!(
                    "double {z} = ({k} & 1) ? copysign(0.6 + fabs({b}), {b}) : 0.0;"
                ));
                self.line(format!("double {name} = {z} != 0 ? 0.5 * {a} / {z} : 0.0;"));
            }
            1 => {
                self.line(format!("double {z} = ({k} & 1) * (0.4 + {b} * {b});"));
                self.line(format!("double {name} = {z} > 0 ? 0.7 * sqrt({z}) : 0.0;"));
            }
            _ => {
                self.line(format!(
                    "double {z} = ({k} & 1) * (1.0 + fabs({b})), {name} = 0;"
                ));
                self.line(format!("if ({z} > 0) {name} = 0.5 * log({z}) + 0.1 / {z};"));
            }
        }
        self.variable(name);
    }

    fn exit(&mut self) {
        let condition = self.condition();
        let rare = self.int();
        let condition = format!("{condition} && ({rare} & 3) == 2");
        match self.random.below(4) {
            0 if self.exits => {
                self.note("goto out");
                self.line(format!("if ({condition}) goto out;"));
            }
            1 if self.exits => {
                self.note("return from inside");
                let value = self.bounded();
                self.line(format!("if ({condition}) return {value};"));
            }
            2 if self.loops > 0 => {
                self.note("continue");
                self.line(format!("if ({condition}) continue;"));
            }
            _ if self.in_loop => {
                self.note("break");
                self.line(format!("if ({condition}) break;"));
            }
            _ => self.assign(),
        }
    }

    fn branch(&mut self, depth: u32) {
        self.note("if");
        let condition = self.condition();
        self.line(format!("if ({condition}) {{"));
        self.scope(depth - 1);
        if self.chance(2) {
            self.line("else {");
            self.scope(depth - 1);
        }
    }

    fn choice(&mut self, depth: u32) {
        self.note("switch");
        let key = self.int();
        self.line(format!("switch ({key} & 3) {{"));
        let outer = std::mem::replace(&mut self.in_loop, false);
        for label in ["case 0:", "case 2:", "case 3:", "default:"] {
            if label != "default:" && self.chance(4) {
                continue;
            }
            self.line(format!("{label} {{"));
            self.scope(depth - 1);
            match self.chance(3) {
                true => self.note("case that falls through"),
                false => self.line("break;"),
            }
        }
        self.line("}");
        self.in_loop = outer;
    }

    /// Emits the body of a loop, including the closing brace.
    fn loop_body(&mut self, depth: u32) {
        let outer = std::mem::replace(&mut self.in_loop, true);
        self.loops += 1;
        self.scope(depth - 1);
        self.loops -= 1;
        self.in_loop = outer;
    }

    fn counted(&mut self, depth: u32) {
        if self.loops > 2 {
            return self.assign();
        }
        self.note(["for", "for in for", "for in for in for"][self.loops as usize]);
        let i = self.name("i");
        let head = match self.random.below(6) {
            0 => format!(
                "for (int {i} = 0; {i} < {}; {i}++)",
                1 + self.random.below(8)
            ),
            1 => format!("for (int {i} = 7; {i} >= {}; {i}--)", self.random.below(4)),
            2 if !self.counters.is_empty() => {
                self.note("triangular loop");
                let outer = self.random.pick(&self.counters).clone();
                format!("for (int {i} = 0; {i} < {outer}; {i}++)")
            }
            3 => {
                let first = self.int();
                format!("for (int {i} = {first} & 7; {i} < n; {i} += 2)")
            }
            _ => format!("for (int {i} = 0; {i} < n; {i}++)"),
        };
        self.line(format!("{head} {{"));
        let mark = self.mark();
        self.counters.push(i.clone());
        self.ints.push(i);
        self.loop_body(depth);
        self.back(&mark);
    }

    fn conditional_loop(&mut self, depth: u32) {
        if self.loops > 2 {
            return self.assign();
        }
        let w = self.name("w");
        let trips = 1 + self.random.below(5);
        let condition = self.condition();
        self.line(format!("int {w} = 0;"));
        self.ints.push(w.clone());
        match self.chance(3) {
            true => {
                self.note("do");
                self.line("do {");
                self.loop_body(depth);
                self.line(format!("while ({w}++ < {trips} && ({condition}));"));
            }
            false => {
                self.note("while");
                self.line(format!("while ({w}++ < {trips} && ({condition})) {{"));
                self.loop_body(depth);
            }
        }
    }

    /// Emits loops suited to optimisers: vectorisation, unrolling, interchange.
    fn simple_loop(&mut self) {
        let (i, value) = (self.name("i"), self.operand());
        let full: Vec<String> = self
            .arrays
            .iter()
            .filter(|a| a.mask == 7)
            .map(|a| a.name.clone())
            .collect();
        let (a, b) = (
            self.random.pick(&full).clone(),
            self.random.pick(&full).clone(),
        );
        let head = format!("for (int {i} = 0; {i} < n; {i}++)");
        match self.random.below(5) {
            0 => {
                self.note("loop over elements");
                self.line(format!(
                    "{head} {a}[{i}] = 0.5 * {a}[{i}] + 0.3 * {b}[{i}] * {value};"
                ));
            }
            1 => {
                self.note("sum");
                let sum = self.name("v");
                self.line(format!(
                    "double {sum} = 0; {head} {sum} += {a}[{i}] * {b}[{i}];"
                ));
                self.line(format!("{sum} = tanh(0.2 * {sum});"));
                self.variable(sum);
            }
            2 => {
                self.note("recurrence along an array");
                self.line(format!("for (int {i} = 1; {i} < n; {i}++) {a}[{i}] = 0.6 * {a}[{i} - 1] + 0.3 * {b}[{i}];"));
            }
            3 => {
                self.note("product");
                let product = self.name("v");
                self.line(format!(
                    "double {product} = 1; {head} {product} *= 0.6 + 0.2 * {a}[{i}];"
                ));
                self.variable(product);
            }
            _ => {
                self.note("loop over elements, if");
                self.line(format!("{head} if ({a}[{i}] > 0.1) {b}[{i}] = 0.5 * {b}[{i}] / (0.5 + {a}[{i}]); else {b}[{i}] *= {value} * 0.5;"));
            }
        }
    }
}
