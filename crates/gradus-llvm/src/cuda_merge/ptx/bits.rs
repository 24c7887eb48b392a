//! PTX bit manipulation.

use super::read::Operand;
use super::{InstructionForm, Type, WORD, Writer};

impl Writer {
    /// Translates a bit instruction; `None` if the form is unknown.
    pub(super) fn bit_instruction(&mut self, form: &InstructionForm) -> Option<()> {
        let InstructionForm { op, ty, .. } = *form;
        let n = ty.bits;
        let int = format!("i{n}");
        let result = match (op, form.modifiers, form.operands) {
            ("mov", [], [_, Operand::Vector(parts)]) => self.pack(parts, n)?,
            ("mov", [], [Operand::Vector(parts), whole]) => return self.unpack(parts, whole, n),
            ("mov", [], [_, a]) => self.int_operand(a, n)?,
            ("cvta", [] | ["to"] | ["to", "global" | "shared" | "local" | "const"], [_, a])
            | ("cvta", ["global" | "shared" | "local" | "const"], [_, a])
                if n == 64 =>
            {
                self.int_operand(a, n)?
            }
            ("and" | "or" | "xor", [], [_, a, b]) => {
                let (a, b) = (self.int_operand(a, n)?, self.int_operand(b, n)?);
                self.op(&format!("{op} {int} {a}, {b}"))
            }
            ("not", [], [_, a]) => {
                let a = self.int_operand(a, n)?;
                self.op(&format!("xor {int} {a}, -1"))
            }
            ("selp", [], [_, a, b, p]) => self.select(n, [a, b, p])?,
            ("popc" | "clz", [], [to, a]) if n >= 32 => {
                let count = self.count_bits(op, n, a)?;
                return self.write_register(to, &count, WORD);
            }
            ("brev", [], [_, a]) => {
                let a = self.int_operand(a, n)?;
                self.call(&int, &format!("llvm.bitreverse.{int}"), &[(&int, a)])
            }
            ("bfe", [], [_, a, at, count]) => self.extract_field(ty, a, at, count)?,
            ("bfi", [], [_, from, into, at, count]) => {
                self.insert_field(n, [from, into, at, count])?
            }
            ("prmt", [], [_, a, b, selection]) if n == 32 => self.permute_bytes(a, b, selection)?,
            ("lop3", [], [_, a, b, c, table]) if n == 32 => {
                self.boolean_function(&[a, b, c], table)?
            }
            ("shf", ["l" | "r", "wrap" | "clamp"], [_, low, high, by]) if n == 32 => {
                self.funnel(form.modifiers, [low, high, by])?
            }
            _ => return None,
        };
        self.write_register(form.operands.first()?, &result, ty)
    }

    /// Emits `a` if the predicate holds, otherwise `b`.
    pub(super) fn select(&mut self, n: u32, [a, b, p]: [&Operand; 3]) -> Option<String> {
        let (a, b, p) = (
            self.int_operand(a, n)?,
            self.int_operand(b, n)?,
            self.int_operand(p, 1)?,
        );
        Some(self.op(&format!("select i1 {p}, i{n} {a}, i{n} {b}")))
    }

    /// Emits a population count or a count of leading zeros, in 32 bits.
    fn count_bits(&mut self, op: &str, n: u32, a: &Operand) -> Option<String> {
        let int = format!("i{n}");
        let a = self.int_operand(a, n)?;
        let count = match op {
            "popc" => self.call(&int, &format!("llvm.ctpop.{int}"), &[(&int, a)]),
            _ => {
                let args = [(int.as_str(), a), ("i1", "false".into())];
                self.call(&int, &format!("llvm.ctlz.{int}"), &args)
            }
        };
        Some(match n {
            64 => self.op(&format!("trunc i64 {count} to i32")),
            _ => count,
        })
    }

    /// Packs elements into one value, the first element lowest.
    fn pack(&mut self, parts: &[Operand], n: u32) -> Option<String> {
        let each = n / u32::try_from(parts.len()).ok().filter(|c| n % c == 0)?;
        let mut whole = "0".to_string();
        for (at, part) in parts.iter().enumerate() {
            let part = self.int_operand(part, each)?;
            let wide = match each == n {
                true => part,
                false => self.op(&format!("zext i{each} {part} to i{n}")),
            };
            let there = self.op(&format!("shl i{n} {wide}, {}", each * at as u32));
            whole = self.op(&format!("or i{n} {whole}, {there}"));
        }
        Some(whole)
    }

    /// Unpacks a value into its elements.
    fn unpack(&mut self, parts: &[Operand], whole: &Operand, n: u32) -> Option<()> {
        let each = n / u32::try_from(parts.len())
            .ok()
            .filter(|c| n % c == 0 && *c > 1)?;
        let whole = self.int_operand(whole, n)?;
        for (at, part) in parts.iter().enumerate() {
            let there = self.op(&format!("lshr i{n} {whole}, {}", each * at as u32));
            let value = self.op(&format!("trunc i{n} {there} to i{each}"));
            match part {
                Operand::Named(name) if name == "_" => {}
                part => {
                    let bits = Type {
                        kind: 'b',
                        bits: each,
                    };
                    self.write_register(part, &value, bits)?;
                }
            }
        }
        Some(())
    }

    /// Extracts `count` bits from `at` on; a signed field is extended with the sign of its highest existing
    /// bit.
    fn extract_field(
        &mut self,
        ty: Type,
        a: &Operand,
        at: &Operand,
        count: &Operand,
    ) -> Option<String> {
        let n = ty.bits;
        if n < 32 || ty.kind == 'b' {
            return None;
        }
        let (at, count) = (self.low_byte(at)?, self.low_byte(count)?);
        let a = self.int_operand(a, n)?;
        let (at, count) = (self.zero_extend(&at, n), self.zero_extend(&count, n));
        let int = format!("i{n}");
        let least = |w: &mut Writer, value: &str, most: u32| {
            let args = [
                (int.as_str(), value.to_string()),
                (int.as_str(), most.to_string()),
            ];
            w.call(&int, &format!("llvm.umin.{int}"), &args)
        };
        let near = least(self, &at, n - 1);
        let shift = if ty.kind == 's' { "ashr" } else { "lshr" };
        let mut down = self.op(&format!("{shift} {int} {a}, {near}"));
        if ty.kind == 'u' {
            let beyond = self.op(&format!("icmp uge {int} {at}, {n}"));
            down = self.op(&format!("select i1 {beyond}, {int} 0, {int} {down}"));
        }
        let count = least(self, &count, n);
        let none = self.op(&format!("icmp eq {int} {count}, 0"));
        let some = self.op(&format!("select i1 {none}, {int} {n}, {int} {count}"));
        let spare = self.op(&format!("sub {int} {n}, {some}"));
        let up = self.op(&format!("shl {int} {down}, {spare}"));
        let found = self.op(&format!("{shift} {int} {up}, {spare}"));
        Some(self.op(&format!("select i1 {none}, {int} 0, {int} {found}")))
    }

    /// Inserts the low `count` bits of `from` into `into` at `at`.
    fn insert_field(&mut self, n: u32, [from, into, at, count]: [&Operand; 4]) -> Option<String> {
        if n < 32 {
            return None;
        }
        let (from, into) = (self.int_operand(from, n)?, self.int_operand(into, n)?);
        let (at, count) = (self.low_byte(at)?, self.low_byte(count)?);
        let (at, count) = (self.zero_extend(&at, n), self.zero_extend(&count, n));
        let int = format!("i{n}");
        let all = self.op(&format!("icmp uge {int} {count}, {n}"));
        let near = self.op(&format!("select i1 {all}, {int} 0, {int} {count}"));
        let one = self.op(&format!("shl {int} 1, {near}"));
        let mask = self.op(&format!("sub {int} {one}, 1"));
        let mask = self.op(&format!("select i1 {all}, {int} -1, {int} {mask}"));
        let beyond = self.op(&format!("icmp uge {int} {at}, {n}"));
        let at = self.op(&format!("select i1 {beyond}, {int} 0, {int} {at}"));
        let from = self.op(&format!("and {int} {from}, {mask}"));
        let from = self.op(&format!("shl {int} {from}, {at}"));
        let mask = self.op(&format!("shl {int} {mask}, {at}"));
        let others = self.op(&format!("xor {int} {mask}, -1"));
        let kept = self.op(&format!("and {int} {into}, {others}"));
        let whole = self.op(&format!("or {int} {kept}, {from}"));
        Some(self.op(&format!("select i1 {beyond}, {int} {into}, {int} {whole}")))
    }

    /// Zero-extends a word to `n` bits.
    fn zero_extend(&mut self, word: &str, n: u32) -> String {
        match n {
            64 => self.op(&format!("zext i32 {word} to i64")),
            _ => word.to_string(),
        }
    }

    fn low_byte(&mut self, operand: &Operand) -> Option<String> {
        let value = self.int_operand(operand, 32)?;
        Some(self.op(&format!("and i32 {value}, 255")))
    }

    /// Selects four of eight bytes: each digit of the selection names a byte, or replicates its sign.
    fn permute_bytes(&mut self, a: &Operand, b: &Operand, selection: &Operand) -> Option<String> {
        let (a, b) = (self.int_operand(a, 32)?, self.int_operand(b, 32)?);
        let selection = self.int_operand(selection, 32)?;
        let a = self.op(&format!("zext i32 {a} to i64"));
        let b = self.op(&format!("zext i32 {b} to i64"));
        let b = self.op(&format!("shl i64 {b}, 32"));
        let both = self.op(&format!("or i64 {a}, {b}"));
        let mut whole = "0".to_string();
        for at in 0..4 {
            let digit = self.op(&format!("lshr i32 {selection}, {}", 4 * at));
            let which = self.op(&format!("and i32 {digit}, 7"));
            let which = self.op(&format!("zext i32 {which} to i64"));
            let place = self.op(&format!("shl i64 {which}, 3"));
            let byte = self.op(&format!("lshr i64 {both}, {place}"));
            let byte = self.op(&format!("trunc i64 {byte} to i8"));
            let sign = self.op(&format!("ashr i8 {byte}, 7"));
            let asked = self.op(&format!("and i32 {digit}, 8"));
            let asked = self.op(&format!("icmp ne i32 {asked}, 0"));
            let byte = self.op(&format!("select i1 {asked}, i8 {sign}, i8 {byte}"));
            let byte = self.op(&format!("zext i8 {byte} to i32"));
            let byte = self.op(&format!("shl i32 {byte}, {}", 8 * at));
            whole = self.op(&format!("or i32 {whole}, {byte}"));
        }
        Some(whole)
    }

    /// Evaluates a three-input boolean function by its truth table.
    fn boolean_function(&mut self, operands: &[&Operand; 3], table: &Operand) -> Option<String> {
        let table = self.int_operand(table, 32)?;
        let mut values = Vec::new();
        for operand in operands {
            let value = self.int_operand(operand, 32)?;
            let not = self.op(&format!("xor i32 {value}, -1"));
            values.push([not, value]);
        }
        let mut whole = "0".to_string();
        for row in 0..8_usize {
            let [a, b, c] = [2, 1, 0].map(|at| &values[2 - at][row >> at & 1]);
            let there = self.op(&format!("lshr i32 {table}, {row}"));
            let bit = self.op(&format!("and i32 {there}, 1"));
            let mut all = self.op(&format!("sub i32 0, {bit}"));
            for value in [a, b, c] {
                all = self.op(&format!("and i32 {all}, {value}"));
            }
            whole = self.op(&format!("or i32 {whole}, {all}"));
        }
        Some(whole)
    }

    /// Emits a funnel shift of two words.
    fn funnel(&mut self, how: &[&str], [low, high, by]: [&Operand; 3]) -> Option<String> {
        let (low, high) = (self.int_operand(low, 32)?, self.int_operand(high, 32)?);
        let by = self.int_operand(by, 32)?;
        let by = match how[1] {
            "wrap" => self.op(&format!("and i32 {by}, 31")),
            _ => self.call("i32", "llvm.umin.i32", &[("i32", by), ("i32", "32".into())]),
        };
        let low = self.op(&format!("zext i32 {low} to i64"));
        let high = self.op(&format!("zext i32 {high} to i64"));
        let high = self.op(&format!("shl i64 {high}, 32"));
        let both = self.op(&format!("or i64 {low}, {high}"));
        let by = self.op(&format!("zext i32 {by} to i64"));
        let moved = match how[0] {
            "r" => self.op(&format!("lshr i64 {both}, {by}")),
            _ => {
                let moved = self.op(&format!("shl i64 {both}, {by}"));
                self.op(&format!("lshr i64 {moved}, 32"))
            }
        };
        Some(self.op(&format!("trunc i64 {moved} to i32")))
    }
}
