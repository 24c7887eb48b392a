//! PTX arithmetic: dispatch of all computing instructions, and integer arithmetic.

use super::read::Operand;
use super::{InstructionForm, Type, WORD, Writer};

/// The pseudo-register of the carry.
const CARRY: &str = "carry";

impl Writer {
    /// Translates a computing instruction; `None` if the form is unknown.
    pub(super) fn arithmetic(&mut self, name: &[&str], operands: &[Operand]) -> Option<()> {
        let (op, modifiers) = name.split_first()?;
        match (*op, modifiers) {
            ("cvt", _) => return self.convert(modifiers, operands),
            ("setp", _) => return self.compare(modifiers, operands),
            ("vadd" | "vshl" | "vshr", ["u32", "u32", "u32", rest @ ..]) => {
                return self.video(op, rest, operands);
            }
            _ => {}
        }
        let (word, modifiers) = modifiers.split_last()?;
        let form = InstructionForm {
            op,
            modifiers,
            ty: Type::read(word)?,
            operands,
        };
        match form.ty.kind {
            'f' => self.floating(&form),
            _ if form.ty.bits == 8 => None,
            _ => self.integer(&form).or_else(|| self.bit_instruction(&form)),
        }
    }

    fn integer(&mut self, form: &InstructionForm) -> Option<()> {
        let InstructionForm { op, ty, .. } = *form;
        let n = ty.bits;
        let sign = if ty.kind == 's' { 's' } else { 'u' };
        match (op, form.modifiers, form.operands) {
            ("mul" | "mad", [how @ ("hi" | "wide")], operands) => {
                self.wide_product(op, how, ty, operands)
            }
            ("mad", ["lo"], [to, a, b, c]) => {
                let (a, b, c) = (
                    self.int_operand(a, n)?,
                    self.int_operand(b, n)?,
                    self.int_operand(c, n)?,
                );
                let product = self.op(&format!("mul i{n} {a}, {b}"));
                let sum = self.op(&format!("add i{n} {product}, {c}"));
                self.write_register(to, &sum, ty)
            }
            ("add" | "addc" | "sub" | "subc" | "mad" | "madc", modifiers, _)
                if op.ends_with('c') || modifiers.contains(&"cc") =>
            {
                self.carry_arithmetic(form)
            }
            ("neg" | "abs", [], [to, a]) if ty.kind == 's' => {
                let a = self.int_operand(a, n)?;
                let mut result = self.op(&format!("sub i{n} 0, {a}"));
                if op == "abs" {
                    let below = self.op(&format!("icmp slt i{n} {a}, 0"));
                    result = self.op(&format!("select i1 {below}, i{n} {result}, i{n} {a}"));
                }
                self.write_register(to, &result, ty)
            }
            ("shl" | "shr", [], [to, a, by]) => {
                let result = self.shift(op, ty, a, by)?;
                self.write_register(to, &result, ty)
            }
            ("add" | "sub", [], [to, a, b]) | ("mul", ["lo"], [to, a, b]) => {
                let (a, b) = (self.int_operand(a, n)?, self.int_operand(b, n)?);
                let result = self.op(&format!("{op} i{n} {a}, {b}"));
                self.write_register(to, &result, ty)
            }
            ("div" | "rem", [], [to, a, b]) => {
                let (a, b) = (self.int_operand(a, n)?, self.int_operand(b, n)?);
                let result = self.total_division(op, ty, &a, &b);
                self.write_register(to, &result, ty)
            }
            ("min" | "max", [], [to, a, b]) => {
                let int = format!("i{n}");
                let args = [
                    (int.as_str(), self.int_operand(a, n)?),
                    (&int, self.int_operand(b, n)?),
                ];
                let result = self.call(&int, &format!("llvm.{sign}{op}.i{n}"), &args);
                self.write_register(to, &result, ty)
            }
            _ => None,
        }
    }

    /// Emits a quotient or a remainder that is defined for all operands. Division by 0, undefined in PTX,
    /// yields all ones and the dividend; the minimum by -1 yields itself and a remainder of 0.
    fn total_division(&mut self, op: &str, ty: Type, a: &str, b: &str) -> String {
        let n = ty.bits;
        let sign = if ty.kind == 's' { 's' } else { 'u' };
        let none = self.op(&format!("icmp eq i{n} {b}, 0"));
        let mut by = self.op(&format!("select i1 {none}, i{n} 1, i{n} {b}"));
        let mut negated = None;
        if ty.kind == 's' {
            let minus = self.op(&format!("icmp eq i{n} {b}, -1"));
            by = self.op(&format!("select i1 {minus}, i{n} 1, i{n} {by}"));
            negated = Some(minus);
        }
        let mut result = self.op(&format!("{sign}{op} i{n} {a}, {by}"));
        if let (Some(minus), "div") = (negated, op) {
            let less = self.op(&format!("sub i{n} 0, {a}"));
            result = self.op(&format!("select i1 {minus}, i{n} {less}, i{n} {result}"));
        }
        let without = if op == "div" { "-1" } else { a };
        self.op(&format!("select i1 {none}, i{n} {without}, i{n} {result}"))
    }

    /// Emits an addition or subtraction with carry-in (`addc`), carry-out (`cc`), or both.
    fn carry_arithmetic(&mut self, form: &InstructionForm) -> Option<()> {
        let (ty, n) = (form.ty, form.ty.bits);
        let (base, takes) = match form.op.strip_suffix('c') {
            Some(base) => (base, true),
            None => (form.op, false),
        };
        let (part, leaves) = match form.modifiers {
            [rest @ .., "cc"] => (rest, true),
            rest => (rest, false),
        };
        // A carry from a previous assembly statement is unknown.
        if takes && !self.carried || n < 32 || ty.kind == 'b' {
            return None;
        }
        let (to, a, b) = match (base, part, form.operands) {
            ("add" | "sub", [], [to, a, b]) => {
                (to, self.int_operand(a, n)?, self.int_operand(b, n)?)
            }
            ("mad", ["lo"], [to, a, b, c]) => {
                let (a, b) = (self.int_operand(a, n)?, self.int_operand(b, n)?);
                (
                    to,
                    self.op(&format!("mul i{n} {a}, {b}")),
                    self.int_operand(c, n)?,
                )
            }
            ("mad", ["hi"], [to, a, b, c]) => (
                to,
                self.upper_half_product(ty, a, b)?,
                self.int_operand(c, n)?,
            ),
            _ => return None,
        };
        if self.bits(CARRY).is_none() {
            self.add_register(CARRY, 1);
        }
        let before = match takes {
            true => self.load_register(CARRY)?,
            false => "false".into(),
        };
        let before = self.op(&format!("zext i1 {before} to i{n}"));
        let op = if base == "sub" { "sub" } else { "add" };
        let first = self.op(&format!("{op} i{n} {a}, {b}"));
        let result = self.op(&format!("{op} i{n} {first}, {before}"));
        if leaves {
            let passes = match op {
                "add" => [(&first, &a), (&result, &first)],
                _ => [(&a, &b), (&first, &before)],
            };
            let [one, two] = passes.map(|(x, y)| self.op(&format!("icmp ult i{n} {x}, {y}")));
            let carry = self.op(&format!("or i1 {one}, {two}"));
            self.store_register(CARRY, &carry)?;
            self.carried = true;
        }
        self.write_register(to, &result, ty)
    }

    /// Emits a product of double width, or its upper half.
    fn wide_product(&mut self, op: &str, form: &str, ty: Type, operands: &[Operand]) -> Option<()> {
        let (n, wide) = (ty.bits, 2 * ty.bits);
        let [to, a, b, more @ ..] = operands else {
            return None;
        };
        let (mut result, has) = match form {
            "hi" => (self.upper_half_product(ty, a, b)?, ty),
            _ if n == 64 => return None,
            _ => (self.product(ty, a, b)?, Type { bits: wide, ..ty }),
        };
        match (op, more) {
            ("mul", []) => {}
            ("mad", [c]) => {
                let c = self.int_operand(c, has.bits)?;
                result = self.op(&format!("add i{} {result}, {c}", has.bits));
            }
            _ => return None,
        }
        self.write_register(to, &result, has)
    }

    /// Emits a product of double width.
    fn product(&mut self, ty: Type, a: &Operand, b: &Operand) -> Option<String> {
        let (n, wide) = (ty.bits, 2 * ty.bits);
        let extend = if ty.kind == 's' { "sext" } else { "zext" };
        let (a, b) = (self.int_operand(a, n)?, self.int_operand(b, n)?);
        let [a, b] = [a, b].map(|v| self.op(&format!("{extend} i{n} {v} to i{wide}")));
        Some(self.op(&format!("mul i{wide} {a}, {b}")))
    }

    /// Emits the upper half of a product.
    fn upper_half_product(&mut self, ty: Type, a: &Operand, b: &Operand) -> Option<String> {
        let (n, wide) = (ty.bits, 2 * ty.bits);
        let whole = self.product(ty, a, b)?;
        let high = self.op(&format!("lshr i{wide} {whole}, {n}"));
        Some(self.op(&format!("trunc i{wide} {high} to i{n}")))
    }

    /// Emits a shift by any amount: an amount of the width or more shifts out all bits.
    fn shift(&mut self, op: &str, ty: Type, a: &Operand, by: &Operand) -> Option<String> {
        let n = ty.bits;
        let a = self.int_operand(a, n)?;
        let by = self.int_operand(by, 32)?;
        let far = self.op(&format!("icmp uge i32 {by}, {n}"));
        let most = self.op(&format!("select i1 {far}, i32 {}, i32 {by}", n - 1));
        let most = match n {
            32 => most,
            16 => self.op(&format!("trunc i32 {most} to i16")),
            _ => self.op(&format!("zext i32 {most} to i64")),
        };
        Some(match (op, ty.kind) {
            ("shr", 's') => self.op(&format!("ashr i{n} {a}, {most}")),
            _ => {
                let op = if op == "shl" { "shl" } else { "lshr" };
                let near = self.op(&format!("{op} i{n} {a}, {most}"));
                self.op(&format!("select i1 {far}, i{n} 0, i{n} {near}"))
            }
        })
    }

    /// Emits `a op b` plus a third operand: the supported subset of the video instructions.
    fn video(&mut self, op: &str, rest: &[&str], operands: &[Operand]) -> Option<()> {
        let [to, a, b, c] = operands else { return None };
        let first = match (op, rest) {
            ("vadd", ["add"]) => {
                let (a, b) = (self.int_operand(a, 32)?, self.int_operand(b, 32)?);
                self.op(&format!("add i32 {a}, {b}"))
            }
            ("vshl" | "vshr", ["clamp", "add"]) => self.shift(&op[1..], WORD, a, b)?,
            _ => return None,
        };
        let c = self.int_operand(c, 32)?;
        let sum = self.op(&format!("add i32 {first}, {c}"));
        self.write_register(to, &sum, WORD)
    }
}
