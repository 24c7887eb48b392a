//! Expressions of random C programs: floats within ±2 with finite partials, conditions, indices.

use super::c::{Array, Writer};

impl Writer<'_> {
    /// Returns a variable or a constant.
    pub fn operand(&mut self) -> String {
        match self.random.below(9) {
            0 => format!("({:?})", f64::from(self.random.below(30)) * 0.1 - 1.5),
            1 | 2 => self.cell(),
            3 | 4 => self.floats[self.floats.len() - 1].clone(),
            _ => self.random.pick(&self.floats).clone(),
        }
    }

    /// Returns an element of an array.
    pub fn cell(&mut self) -> String {
        let array = self.random.pick(&self.arrays).clone();
        let index = self.index(&array);
        format!("{}[{index}]", array.name)
    }

    /// Returns an index in bounds.
    pub fn index(&mut self, array: &Array) -> String {
        let mask = array.mask;
        if mask == 7 && !self.counters.is_empty() && !self.chance(3) {
            let i = self.random.pick(&self.counters).clone();
            return match self.random.below(6) {
                0 => format!("7 - {i}"),
                1 => format!("{i} ^ 1"),
                2 => format!("({i} + 1) & 7"),
                _ => i,
            };
        }
        match self.random.below(4) {
            0 => format!("{}", self.random.below(mask + 1)),
            1 => {
                let (a, b) = (self.int(), self.int());
                format!("({a} * 3 + {b}) & {mask}")
            }
            _ => format!("{} & {mask}", self.int()),
        }
    }

    /// Returns a small integer, possibly computed from a float.
    pub fn int(&mut self) -> String {
        match self.random.below(8) {
            0 => format!("{}", self.random.below(9)),
            1 => {
                self.note("integer made of a number");
                format!("(int)({} * 3.0)", self.operand())
            }
            2 | 3 if !self.counters.is_empty() => self.random.pick(&self.counters).clone(),
            _ => self.random.pick(&self.ints).clone(),
        }
    }

    pub fn condition(&mut self) -> String {
        match self.random.below(6) {
            0..=2 => {
                self.note("condition on numbers");
                let (a, b) = (self.operand(), self.operand());
                let test = *self.random.pick(&["<", ">", "<=", "!=", "=="]);
                format!("{a} {test} {b}")
            }
            3 => {
                let (a, b) = (self.operand(), self.int());
                let join = *self.random.pick(&["&&", "||"]);
                format!("({a} > 0.3 {join} ({b} & 1))")
            }
            _ => {
                let (a, b) = (self.int(), self.int());
                let test = *self.random.pick(&["<", "==", ">=", "!=", "&"]);
                format!("({a} {test} {b})")
            }
        }
    }

    /// Returns an expression within ±2 of operands within ±2.
    pub fn bounded(&mut self) -> String {
        let (a, b) = (self.operand(), self.operand());
        match self.random.below(28) {
            0..=2 => format!("0.5 * {a} + 0.4 * {b}"),
            3 | 4 => format!("0.5 * {a} * {b}"),
            5 => format!("0.5 * ({a} - {b})"),
            6 => format!("{a} / (1.0 + {b} * {b})"),
            7 => format!("0.9 * sqrt({a} * {a} + 0.3)"),
            8 => format!("sin({a} + {b})"),
            9 => format!("tanh({a} * {b})"),
            10 => format!("exp(-{a} * {a})"),
            11 => format!("0.6 * log(1.5 + {a} * {b} * {b} * {a})"),
            12 => format!("atan2({a}, 1.5 + {b} * {b})"),
            13 => {
                self.note("pow");
                format!("0.4 * pow(fabs({a}) + 0.5, 1.3)")
            }
            14 => {
                self.note("fmin, fmax, fabs, copysign");
                let name = *self.random.pick(&["fmin", "fmax", "copysign"]);
                format!("{name}({a}, 0.8 * fabs({b}))")
            }
            15 => format!("0.9 * cos({a}) * fabs({b}) / (0.5 + fabs({b}))"),
            16 | 17 => {
                self.note("conditional value");
                let condition = self.condition();
                format!("({condition} ? {a} : 0.7 * {b})")
            }
            18 => {
                self.note("division under a guard");
                let k = self.int();
                format!("({k} & 1 ? {a} / (0.9 + fabs({b})) : {a} - {b} * 0.0)")
            }
            19 => {
                self.note("float");
                self.single = true;
                format!("(double)((float){a} * 0.5f * (float){b})")
            }
            20 => {
                self.note("pow with integer");
                format!("0.2 * pow({a}, {})", 1 + self.random.below(3))
            }
            21 => format!("0.5 * {a} + 0.03 * (double)({} & 7)", self.int()),
            22 | 23 if !self.helpers.is_empty() && self.loops < 2 => self.call(),
            24 => {
                self.note("structure returned by value");
                let seed = self.seed;
                format!(
                    "two_make_{seed}({a}, {b}).{}",
                    self.random.pick(&["a", "b"])
                )
            }
            25 | 26 => self.signed(&a, &b),
            _ => format!("0.3 * {a} + 0.2 * {b} * {a}"),
        }
    }

    /// Returns a float whose sign is set by masks, from another float or a comparison.
    fn signed(&mut self, a: &str, b: &str) -> String {
        self.note("signs by masks");
        let (x, y) = (
            format!("bits_{0}({a})", self.seed),
            format!("bits_{0}({b})", self.seed),
        );
        let c = self.operand();
        let z = format!("bits_{0}({c})", self.seed);
        let (top, rest) = ("(1ull << 63)", "~(1ull << 63)");
        let bits = match self.random.below(8) {
            0 => format!("({x} & {rest}) | ({y} & {top})"),
            1 => format!("{x} ^ ({y} & {top})"),
            2 => format!("{x} ^ (({y} ^ {z}) & {top})"),
            3 => format!("({x} & {rest}) | ((uint64_t)({b} < {c}) << 63)"),
            4 => format!("({x} | {top}) ^ ({y} & {top})"),
            5 => format!("{x} + ({y} & {top})"),
            6 => format!("({x} & {rest}) | (~{y} & {top})"),
            _ => format!("(-(uint64_t)({b} < {c}) & {x}) | (~-(uint64_t)({b} < {c}) & {z})"),
        };
        format!("num_{}({bits})", self.seed)
    }

    fn call(&mut self) -> String {
        self.note("call");
        let helper = self.random.pick(&self.helpers).clone();
        let full: Vec<String> = self
            .arrays
            .iter()
            .filter(|a| a.mask == 7)
            .map(|a| a.name.clone())
            .collect();
        let array = self.random.pick(&full).clone();
        let value = self.operand();
        match helper.starts_with("rec") {
            true => format!("{helper}({}, {array}, {value})", self.random.below(4)),
            false => format!("{helper}(n, {array}, {value})"),
        }
    }
}
