//! Instructions that compute.

use super::read::Operand;
use super::{Type, Writer};

impl Writer {
    /// Instructions that compute. Nothing where there is no such one.
    pub(super) fn arithmetic(&mut self, name: &[&str], operands: &[Operand]) -> Option<()> {
        let (op, modifiers) = name.split_first()?;
        if *op == "cvt" {
            return self.convert(modifiers, operands);
        }
        if *op == "set" || *op == "setp" {
            return self.compare(op, modifiers, operands);
        }
        if let ("vadd" | "vshl" | "vshr", ["u32", "u32", "u32", rest @ ..]) = (*op, modifiers) {
            return self.video(op, rest, operands);
        }
        let (word, modifiers) = modifiers.split_last()?;
        let ty = Type::read(word)?;
        match ty.kind {
            'f' => self.floating(op, modifiers, ty, operands),
            _ => self
                .integer(op, modifiers, ty, operands)
                .or_else(|| self.bits_of(op, modifiers, ty, operands)),
        }
    }

    fn integer(
        &mut self,
        op: &str,
        modifiers: &[&str],
        ty: Type,
        operands: &[Operand],
    ) -> Option<()> {
        let n = ty.bits;
        let signed = ty.kind == 's';
        let sign = if signed { 's' } else { 'u' };
        if n == 8 {
            return None;
        }
        if let ("mul" | "mad", [form @ ("hi" | "wide")]) = (op, modifiers) {
            return self.wide_product(op, form, ty, operands);
        }
        match (op, modifiers) {
            ("mad", ["lo"]) => {
                let [to, a, b, c] = operands else { return None };
                let (a, b, c) = (self.value(a, n)?, self.value(b, n)?, self.value(c, n)?);
                let product = self.op(&format!("mul i{n} {a}, {b}"));
                let sum = self.op(&format!("add i{n} {product}, {c}"));
                return self.give(to, &sum, ty);
            }
            ("neg" | "abs", []) if signed => {
                let [to, a] = operands else { return None };
                let a = self.value(a, n)?;
                let less = self.op(&format!("sub i{n} 0, {a}"));
                let result = match op {
                    "neg" => less,
                    _ => {
                        let below = self.op(&format!("icmp slt i{n} {a}, 0"));
                        self.op(&format!("select i1 {below}, i{n} {less}, i{n} {a}"))
                    }
                };
                return self.give(to, &result, ty);
            }
            _ => {}
        }
        let [to, a, b] = operands else { return None };
        if let ("shl" | "shr", []) = (op, modifiers) {
            let result = self.shift(op, ty, a, b)?;
            return self.give(to, &result, ty);
        }
        let (a, b) = (self.value(a, n)?, self.value(b, n)?);
        let result = match (op, modifiers) {
            ("add", []) => self.op(&format!("add i{n} {a}, {b}")),
            ("sub", []) => self.op(&format!("sub i{n} {a}, {b}")),
            ("mul", ["lo"]) => self.op(&format!("mul i{n} {a}, {b}")),
            ("div", []) => self.op(&format!("{sign}div i{n} {a}, {b}")),
            ("rem", []) => self.op(&format!("{sign}rem i{n} {a}, {b}")),
            ("min" | "max", []) => {
                let int = format!("i{n}");
                let args = [(int.as_str(), a), (int.as_str(), b)];
                self.call(&int, &format!("llvm.{sign}{op}.i{n}"), &args)
            }
            _ => return None,
        };
        self.give(to, &result, ty)
    }

    /// Products of twice as many bits, or the upper half of them.
    fn wide_product(&mut self, op: &str, form: &str, ty: Type, operands: &[Operand]) -> Option<()> {
        let (n, wide) = (ty.bits, 2 * ty.bits);
        let [to, a, b, more @ ..] = operands else {
            return None;
        };
        let extend = if ty.kind == 's' { "sext" } else { "zext" };
        let mut parts = Vec::new();
        for operand in [a, b] {
            let value = self.value(operand, n)?;
            parts.push(self.op(&format!("{extend} i{n} {value} to i{wide}")));
        }
        let mut result = self.op(&format!("mul i{wide} {}, {}", parts[0], parts[1]));
        let mut has = Type { bits: wide, ..ty };
        if form == "hi" {
            let high = self.op(&format!("lshr i{wide} {result}, {n}"));
            result = self.op(&format!("trunc i{wide} {high} to i{n}"));
            has = ty;
        } else if n == 64 {
            return None;
        }
        match (op, more) {
            ("mul", []) => {}
            ("mad", [c]) => {
                let c = self.value(c, has.bits)?;
                result = self.op(&format!("add i{} {result}, {c}", has.bits));
            }
            _ => return None,
        }
        self.give(to, &result, has)
    }

    /// A shift by any number of bits: by all there are, or more, everything is shifted out.
    fn shift(&mut self, op: &str, ty: Type, a: &Operand, by: &Operand) -> Option<String> {
        let n = ty.bits;
        let a = self.value(a, n)?;
        let by = self.value(by, 32)?;
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

    /// Instructions about bits.
    fn bits_of(
        &mut self,
        op: &str,
        modifiers: &[&str],
        ty: Type,
        operands: &[Operand],
    ) -> Option<()> {
        let n = ty.bits;
        let int = format!("i{n}");
        if n == 8 {
            return None;
        }
        let result = match (op, modifiers, operands) {
            ("mov", [], [_, Operand::Several(parts)]) => self.joined(parts, n)?,
            ("mov", [], [Operand::Several(parts), whole]) => return self.apart(parts, whole, n),
            ("mov", [], [_, a]) => self.value(a, n)?,
            ("cvta", [] | ["to"] | ["to", "global" | "shared" | "local" | "const"], [_, a])
            | ("cvta", ["global" | "shared" | "local" | "const"], [_, a])
                if n == 64 =>
            {
                self.value(a, n)?
            }
            ("and" | "or" | "xor", [], [_, a, b]) => {
                let (a, b) = (self.value(a, n)?, self.value(b, n)?);
                self.op(&format!("{op} {int} {a}, {b}"))
            }
            ("not", [], [_, a]) => {
                let a = self.value(a, n)?;
                self.op(&format!("xor {int} {a}, -1"))
            }
            ("selp", [], [_, a, b, p]) => {
                let (a, b, p) = (self.value(a, n)?, self.value(b, n)?, self.value(p, 1)?);
                self.op(&format!("select i1 {p}, {int} {a}, {int} {b}"))
            }
            ("popc" | "clz", [], [to, a]) if n >= 32 => {
                let a = self.value(a, n)?;
                let mut count = match op {
                    "popc" => self.call(&int, &format!("llvm.ctpop.{int}"), &[(&int, a)]),
                    _ => {
                        let args = [(int.as_str(), a), ("i1", "false".into())];
                        self.call(&int, &format!("llvm.ctlz.{int}"), &args)
                    }
                };
                if n == 64 {
                    count = self.op(&format!("trunc i64 {count} to i32"));
                }
                return self.give(
                    to,
                    &count,
                    Type {
                        kind: 'u',
                        bits: 32,
                    },
                );
            }
            ("brev", [], [_, a]) => {
                let a = self.value(a, n)?;
                self.call(&int, &format!("llvm.bitreverse.{int}"), &[(&int, a)])
            }
            ("bfe", [], [_, a, at, count]) => self.field(ty, a, at, count)?,
            ("bfi", [], [_, from, into, at, count]) => self.insert(n, from, into, at, count)?,
            ("prmt", [], [_, a, b, selection]) if n == 32 => self.permuted(a, b, selection)?,
            ("lop3", [], [_, a, b, c, Operand::Number(table)]) if n == 32 => {
                self.looked_up(&[a, b, c], *table)?
            }
            ("shf", ["l" | "r", "wrap" | "clamp"], [_, low, high, by]) if n == 32 => {
                self.funnel(modifiers, low, high, by)?
            }
            _ => return None,
        };
        self.give(operands.first()?, &result, ty)
    }

    /// Parts as one value, the first the lowest.
    fn joined(&mut self, parts: &[Operand], n: u32) -> Option<String> {
        let each = n / u32::try_from(parts.len()).ok().filter(|c| n % c == 0)?;
        let mut whole = "0".to_string();
        for (at, part) in parts.iter().enumerate() {
            let part = self.value(part, each)?;
            let wide = match each == n {
                true => part,
                false => self.op(&format!("zext i{each} {part} to i{n}")),
            };
            let there = self.op(&format!("shl i{n} {wide}, {}", each * at as u32));
            whole = self.op(&format!("or i{n} {whole}, {there}"));
        }
        Some(whole)
    }

    /// A value as its parts.
    fn apart(&mut self, parts: &[Operand], whole: &Operand, n: u32) -> Option<()> {
        let each = n / u32::try_from(parts.len())
            .ok()
            .filter(|c| n % c == 0 && *c > 1)?;
        let whole = self.value(whole, n)?;
        for (at, part) in parts.iter().enumerate() {
            let there = self.op(&format!("lshr i{n} {whole}, {}", each * at as u32));
            let value = self.op(&format!("trunc i{n} {there} to i{each}"));
            match part {
                Operand::Named(name) if name == "_" => {}
                part => self.give(
                    part,
                    &value,
                    Type {
                        kind: 'b',
                        bits: each,
                    },
                )?,
            }
        }
        Some(())
    }

    /// Bits from `at` on, `count` of them; signed ones with the sign of the last that is there.
    fn field(&mut self, ty: Type, a: &Operand, at: &Operand, count: &Operand) -> Option<String> {
        let n = ty.bits;
        if n < 32 || ty.kind == 'b' {
            return None;
        }
        let (at, count) = (self.low_byte(at)?, self.low_byte(count)?);
        let a = self.value(a, n)?;
        let (at, count) = (self.wide(&at, n), self.wide(&count, n));
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
        let room = self.op(&format!("sub {int} {n}, {some}"));
        let up = self.op(&format!("shl {int} {down}, {room}"));
        let found = self.op(&format!("{shift} {int} {up}, {room}"));
        Some(self.op(&format!("select i1 {none}, {int} 0, {int} {found}")))
    }

    /// The low bits of `from` in place of `count` of `into` from `at` on.
    fn insert(
        &mut self,
        n: u32,
        from: &Operand,
        into: &Operand,
        at: &Operand,
        count: &Operand,
    ) -> Option<String> {
        if n < 32 {
            return None;
        }
        let (from, into) = (self.value(from, n)?, self.value(into, n)?);
        let (at, count) = (self.low_byte(at)?, self.low_byte(count)?);
        let (at, count) = (self.wide(&at, n), self.wide(&count, n));
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

    /// A word in `n` bits.
    fn wide(&mut self, word: &str, n: u32) -> String {
        match n {
            64 => self.op(&format!("zext i32 {word} to i64")),
            _ => word.to_string(),
        }
    }

    fn low_byte(&mut self, operand: &Operand) -> Option<String> {
        let value = self.value(operand, 32)?;
        Some(self.op(&format!("and i32 {value}, 255")))
    }

    /// Four bytes out of eight: each of the selection's four digits names one, or its sign.
    fn permuted(&mut self, a: &Operand, b: &Operand, selection: &Operand) -> Option<String> {
        let (a, b) = (self.value(a, 32)?, self.value(b, 32)?);
        let selection = self.value(selection, 32)?;
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

    /// Any function of three bits, by its table.
    fn looked_up(&mut self, operands: &[&Operand; 3], table: u64) -> Option<String> {
        let mut values = Vec::new();
        for operand in operands {
            let value = self.value(operand, 32)?;
            let not = self.op(&format!("xor i32 {value}, -1"));
            values.push([not, value]);
        }
        let mut whole = "0".to_string();
        for row in (0..8_usize).filter(|row| table >> row & 1 == 1) {
            let both = self.op(&format!(
                "and i32 {}, {}",
                values[0][row >> 2 & 1],
                values[1][row >> 1 & 1]
            ));
            let all = self.op(&format!("and i32 {both}, {}", values[2][row & 1]));
            whole = self.op(&format!("or i32 {whole}, {all}"));
        }
        Some(whole)
    }

    /// A shift over two words.
    fn funnel(
        &mut self,
        how: &[&str],
        low: &Operand,
        high: &Operand,
        by: &Operand,
    ) -> Option<String> {
        let (low, high) = (self.value(low, 32)?, self.value(high, 32)?);
        let by = self.value(by, 32)?;
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

    /// `a op b` with a third value added: what is left of the instructions for video.
    fn video(&mut self, op: &str, rest: &[&str], operands: &[Operand]) -> Option<()> {
        let [to, a, b, c] = operands else { return None };
        let ty = Type {
            kind: 'u',
            bits: 32,
        };
        let first = match (op, rest) {
            ("vadd", ["add"]) => {
                let (a, b) = (self.value(a, 32)?, self.value(b, 32)?);
                self.op(&format!("add i32 {a}, {b}"))
            }
            ("vshl" | "vshr", ["clamp", "add"]) => self.shift(&op[1..], ty, a, b)?,
            _ => return None,
        };
        let c = self.value(c, 32)?;
        let sum = self.op(&format!("add i32 {first}, {c}"));
        self.give(to, &sum, ty)
    }

    fn compare(&mut self, op: &str, modifiers: &[&str], operands: &[Operand]) -> Option<()> {
        let ([how, word], [to, a, b]) = (modifiers, operands) else {
            return None;
        };
        let ty = Type::read(word)?;
        if op != "setp" || ty.bits == 8 {
            return None;
        }
        let holds = if ty.kind == 'f' {
            let condition = match *how {
                "eq" | "lt" | "le" | "gt" | "ge" => format!("o{how}"),
                "ne" => "one".into(),
                "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" => format!("u{}", &how[..2]),
                "num" => "ord".into(),
                "nan" => "uno".into(),
                _ => return None,
            };
            let (a, b) = (self.number(a, ty)?, self.number(b, ty)?);
            self.op(&format!("fcmp {condition} {} {a}, {b}", ty.float()))
        } else {
            let condition = match (*how, ty.kind) {
                ("eq" | "ne", _) => how.to_string(),
                ("lt" | "le" | "gt" | "ge", 's' | 'u') => format!("{}{how}", ty.kind),
                ("lo", 'u') => "ult".into(),
                ("ls", 'u') => "ule".into(),
                ("hi", 'u') => "ugt".into(),
                ("hs", 'u') => "uge".into(),
                _ => return None,
            };
            let (a, b) = (self.value(a, ty.bits)?, self.value(b, ty.bits)?);
            self.op(&format!("icmp {condition} i{} {a}, {b}", ty.bits))
        };
        self.give(to, &holds, Type { kind: 'p', bits: 1 })
    }

    /// Floating-point arithmetic, to the nearest.
    fn floating(
        &mut self,
        op: &str,
        modifiers: &[&str],
        ty: Type,
        operands: &[Operand],
    ) -> Option<()> {
        let n = ty.bits;
        let f = ty.float();
        let rest: Vec<&str> = modifiers
            .iter()
            .copied()
            .filter(|m| !matches!(*m, "rn" | "ftz"))
            .collect();
        if op == "mov" && modifiers.is_empty() {
            let [to, a] = operands else { return None };
            let value = self.value(a, n)?;
            return self.give(to, &value, ty);
        }
        if op == "selp" && modifiers.is_empty() {
            let [to, a, b, p] = operands else { return None };
            let (a, b, p) = (self.value(a, n)?, self.value(b, n)?, self.value(p, 1)?);
            let value = self.op(&format!("select i1 {p}, i{n} {a}, i{n} {b}"));
            return self.give(to, &value, ty);
        }
        let (to, from) = operands.split_first()?;
        let mut values = Vec::new();
        for operand in from {
            values.push(self.number(operand, ty)?);
        }
        let one = |w: &mut Writer, name: &str, values: &[String]| {
            let args: Vec<(&str, String)> = values.iter().map(|v| (f, v.clone())).collect();
            w.call(f, &format!("llvm.{name}.f{n}"), &args)
        };
        let result = match (op, &rest[..], &values[..]) {
            ("add" | "sub" | "mul", [], [a, b]) => self.op(&format!("f{op} {f} {a}, {b}")),
            ("div", [] | ["approx"] | ["full"], [a, b]) => self.op(&format!("fdiv {f} {a}, {b}")),
            ("fma" | "mad", [], [_, _, _]) => one(self, "fma", &values),
            ("min", [], [_, _]) => one(self, "minnum", &values),
            ("max", [], [_, _]) => one(self, "maxnum", &values),
            ("abs", [], [_]) => one(self, "fabs", &values),
            ("neg", [], [a]) => self.op(&format!("fneg {f} {a}")),
            ("sqrt", [] | ["approx"], [_]) => one(self, "sqrt", &values),
            ("rcp", [] | ["approx"], [a]) => self.op(&format!("fdiv {f} 1.0, {a}")),
            ("rsqrt", ["approx"], [_]) => {
                let root = one(self, "sqrt", &values);
                self.op(&format!("fdiv {f} 1.0, {root}"))
            }
            ("ex2", ["approx"], [_]) => one(self, "exp2", &values),
            ("lg2", ["approx"], [_]) => one(self, "log2", &values),
            ("sin" | "cos" | "tanh", ["approx"], [_]) => one(self, op, &values),
            _ => return None,
        };
        self.give_number(to, &result, ty)
    }

    fn convert(&mut self, modifiers: &[&str], operands: &[Operand]) -> Option<()> {
        let ([how @ .., to_word, from_word], [to, from]) = (modifiers, operands) else {
            return None;
        };
        let (into, of) = (Type::read(to_word)?, Type::read(from_word)?);
        let how: Vec<&str> = how.iter().copied().filter(|m| *m != "ftz").collect();
        match (into.kind, of.kind) {
            ('f', 'f') => {
                let value = self.number(from, of)?;
                let cast = match into.bits.cmp(&of.bits) {
                    std::cmp::Ordering::Greater if how.is_empty() => "fpext",
                    std::cmp::Ordering::Less if how == ["rn"] => "fptrunc",
                    _ => return None,
                };
                let (a, b) = (of.float(), into.float());
                let value = self.op(&format!("{cast} {a} {value} to {b}"));
                self.give_number(to, &value, into)
            }
            ('f', 's' | 'u') if how == ["rn"] => {
                let value = self.value(from, of.bits)?;
                let cast = if of.kind == 's' { "sitofp" } else { "uitofp" };
                let value = self.op(&format!("{cast} i{} {value} to {}", of.bits, into.float()));
                self.give_number(to, &value, into)
            }
            (sign @ ('s' | 'u'), 'f') if matches!(how[..], ["rzi" | "rni" | "rmi" | "rpi"]) => {
                let value = self.number(from, of)?;
                let round = match how[0] {
                    "rzi" => "trunc",
                    "rni" => "roundeven",
                    "rmi" => "floor",
                    _ => "ceil",
                };
                let f = of.float();
                let value = self.call(f, &format!("llvm.{round}.f{}", of.bits), &[(f, value)]);
                let int = format!("i{}", into.bits);
                let name = format!("llvm.fpto{sign}i.sat.{int}.f{}", of.bits);
                let value = self.call(&int, &name, &[(f, value)]);
                self.give(to, &value, into)
            }
            ('s' | 'u' | 'b', 's' | 'u' | 'b') if how.is_empty() => {
                let value = self.value(from, of.bits)?;
                let cast = match into.bits.cmp(&of.bits) {
                    std::cmp::Ordering::Less => "trunc",
                    std::cmp::Ordering::Equal => return self.give(to, &value, into),
                    std::cmp::Ordering::Greater if of.kind == 's' => "sext",
                    std::cmp::Ordering::Greater => "zext",
                };
                let value = self.op(&format!("{cast} i{} {value} to i{}", of.bits, into.bits));
                self.give(to, &value, into)
            }
            _ => None,
        }
    }
}
