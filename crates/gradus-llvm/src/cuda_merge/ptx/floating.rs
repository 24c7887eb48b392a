//! PTX floating-point instructions: arithmetic rounded to nearest, comparisons, conversions.

use super::read::Operand;
use super::{InstructionForm, PREDICATE, Type, Writer};
use std::cmp::Ordering;

impl Writer {
    /// Translates floating-point arithmetic, rounded to nearest. Approximate PTX instructions become exact
    /// ones.
    pub(super) fn floating(&mut self, form: &InstructionForm) -> Option<()> {
        let InstructionForm { op, ty, .. } = *form;
        let (n, f) = (ty.bits, ty.float());
        match (op, form.modifiers, form.operands) {
            ("mov", [], [to, a]) => {
                let value = self.int_operand(a, n)?;
                return self.write_register(to, &value, ty);
            }
            ("selp", [], [to, a, b, p]) => {
                let value = self.select(n, [a, b, p])?;
                return self.write_register(to, &value, ty);
            }
            _ => {}
        }
        let flush = form.modifiers.contains(&"ftz");
        let others = form.modifiers.iter().copied();
        let rest: Vec<&str> = others.filter(|m| !matches!(*m, "rn" | "ftz")).collect();
        let (to, from) = form.operands.split_first()?;
        let mut values = Vec::new();
        for operand in from {
            let value = self.float_operand(operand, ty)?;
            values.push(self.flush_subnormal(value, ty, flush));
        }
        let one = |w: &mut Writer, name: &str, values: &[String]| {
            let args: Vec<(&str, String)> = values.iter().map(|v| (f, v.clone())).collect();
            w.call(f, &format!("llvm.{name}.f{n}"), &args)
        };
        let result = match (op, &rest[..], &values[..]) {
            ("add" | "sub" | "mul", [], [a, b]) => self.op(&format!("f{op} {f} {a}, {b}")),
            ("div", [] | ["approx"] | ["full"], [a, b]) => self.op(&format!("fdiv {f} {a}, {b}")),
            ("fma" | "mad", [], [_, _, _]) => one(self, "fma", &values),
            // A number and NaN yield the number; -0 is less than +0.
            ("min", [], [_, _]) => one(self, "minimumnum", &values),
            ("max", [], [_, _]) => one(self, "maximumnum", &values),
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
        let result = self.flush_subnormal(result, ty, flush);
        self.write_float(to, &result, ty)
    }

    /// Replaces a subnormal value by a zero of equal sign, if flushing is requested (`ftz`).
    fn flush_subnormal(&mut self, value: String, ty: Type, asked: bool) -> String {
        if !asked {
            return value;
        }
        let (n, f) = (ty.bits, ty.float());
        let least = match n {
            16 => "0xH0400",
            32 => "0x3810000000000000",
            _ => "0x0010000000000000",
        };
        let size = self.call(f, &format!("llvm.fabs.f{n}"), &[(f, value.clone())]);
        let below = self.op(&format!("fcmp olt {f} {size}, {least}"));
        let args = [(f, "0.0".to_string()), (f, value.clone())];
        let none = self.call(f, &format!("llvm.copysign.f{n}"), &args);
        self.op(&format!("select i1 {below}, {f} {none}, {f} {value}"))
    }

    /// Translates `setp.how{.and}.type p{|q}, a, b{, c}`: the comparison and its negation, each combined
    /// with `c`.
    pub(super) fn compare(&mut self, modifiers: &[&str], operands: &[Operand]) -> Option<()> {
        let flush = modifiers.contains(&"ftz");
        let words: Vec<&str> = modifiers.iter().copied().filter(|m| *m != "ftz").collect();
        let (how, with, word) = match (&words[..], operands) {
            ([how, word], [_, _, _]) => (*how, None, *word),
            ([how, with @ ("and" | "or" | "xor"), word], [_, _, _, c]) => {
                (*how, Some((*with, self.int_operand(c, 1)?)), *word)
            }
            _ => return None,
        };
        let ty = Type::read(word).filter(|ty| ty.bits > 8)?;
        let holds = self.comparison(how, ty, flush, [&operands[1], &operands[2]])?;
        let (first, second) = match &operands[0] {
            Operand::WithPredicate(first, second) => {
                (&**first, Some(Operand::Named(second.clone())))
            }
            only => (only, None),
        };
        let not = self.op(&format!("xor i1 {holds}, true"));
        let both = [(Some(first), holds), (second.as_ref(), not)];
        for (to, value) in both {
            let Some(to) = to.filter(|to| **to != Operand::Named("_".into())) else {
                continue;
            };
            let value = match &with {
                Some((op, c)) => self.op(&format!("{op} i1 {value}, {c}")),
                None => value,
            };
            self.write_register(to, &value, PREDICATE)?;
        }
        Some(())
    }

    fn comparison(
        &mut self,
        how: &str,
        ty: Type,
        flush: bool,
        [a, b]: [&Operand; 2],
    ) -> Option<String> {
        if ty.kind == 'f' {
            let condition = match how {
                "eq" | "lt" | "le" | "gt" | "ge" => format!("o{how}"),
                "ne" => "one".into(),
                "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" => format!("u{}", &how[..2]),
                "num" => "ord".into(),
                "nan" => "uno".into(),
                _ => return None,
            };
            let (a, b) = (self.float_operand(a, ty)?, self.float_operand(b, ty)?);
            let (a, b) = (
                self.flush_subnormal(a, ty, flush),
                self.flush_subnormal(b, ty, flush),
            );
            return Some(self.op(&format!("fcmp {condition} {} {a}, {b}", ty.float())));
        }
        let condition = match (how, ty.kind) {
            _ if flush => return None,
            ("eq" | "ne", _) => how.to_string(),
            ("lt" | "le" | "gt" | "ge", 's' | 'u') => format!("{}{how}", ty.kind),
            ("lo", 'u') => "ult".into(),
            ("ls", 'u') => "ule".into(),
            ("hi", 'u') => "ugt".into(),
            ("hs", 'u') => "uge".into(),
            _ => return None,
        };
        let (a, b) = (self.int_operand(a, ty.bits)?, self.int_operand(b, ty.bits)?);
        Some(self.op(&format!("icmp {condition} i{} {a}, {b}", ty.bits)))
    }

    /// Translates conversions. Flushing applies to 32-bit floats.
    pub(super) fn convert(&mut self, modifiers: &[&str], operands: &[Operand]) -> Option<()> {
        let ([how @ .., to_word, from_word], [to, from]) = (modifiers, operands) else {
            return None;
        };
        let (into, of) = (Type::read(to_word)?, Type::read(from_word)?);
        let flush = how.contains(&"ftz");
        let how: Vec<&str> = how.iter().copied().filter(|m| *m != "ftz").collect();
        match (into.kind, of.kind) {
            ('f', 'f') => {
                let value = self.float_operand(from, of)?;
                let value = self.flush_subnormal(value, of, flush && of.bits == 32);
                let cast = match into.bits.cmp(&of.bits) {
                    Ordering::Greater if how.is_empty() => "fpext",
                    Ordering::Less if how == ["rn"] => "fptrunc",
                    _ => return None,
                };
                let (a, b) = (of.float(), into.float());
                let value = self.op(&format!("{cast} {a} {value} to {b}"));
                let value = self.flush_subnormal(value, into, flush && into.bits == 32);
                self.write_float(to, &value, into)
            }
            ('f', 's' | 'u') if how == ["rn"] => {
                let value = self.int_operand(from, of.bits)?;
                let cast = if of.kind == 's' { "sitofp" } else { "uitofp" };
                let value = self.op(&format!("{cast} i{} {value} to {}", of.bits, into.float()));
                self.write_float(to, &value, into)
            }
            ('s' | 'u', 'f') if matches!(how[..], ["rzi" | "rni" | "rmi" | "rpi"]) => {
                let value = self.float_operand(from, of)?;
                let value = self.flush_subnormal(value, of, flush && of.bits == 32);
                let value = self.float_to_int(how[0], into, of, &value);
                self.write_register(to, &value, into)
            }
            ('s' | 'u' | 'b', 's' | 'u' | 'b') if how.is_empty() => {
                let value = self.int_operand(from, of.bits)?;
                let cast = match into.bits.cmp(&of.bits) {
                    Ordering::Less => "trunc",
                    Ordering::Equal => return self.write_register(to, &value, into),
                    Ordering::Greater if of.kind == 's' => "sext",
                    Ordering::Greater => "zext",
                };
                let value = self.op(&format!("{cast} i{} {value} to i{}", of.bits, into.bits));
                self.write_register(to, &value, into)
            }
            _ => None,
        }
    }

    /// Emits a saturating conversion to an integer; NaN yields 0, or the highest bit if source or target
    /// has 64 bits.
    fn float_to_int(&mut self, how: &str, into: Type, of: Type, value: &str) -> String {
        let round = match how {
            "rzi" => "trunc",
            "rni" => "roundeven",
            "rmi" => "floor",
            _ => "ceil",
        };
        let (f, bits) = (of.float(), into.bits);
        let int = format!("i{bits}");
        let name = format!("llvm.{round}.f{}", of.bits);
        let rounded = self.call(f, &name, &[(f, value.to_string())]);
        let name = format!("llvm.fpto{}i.sat.{int}.f{}", into.kind, of.bits);
        let found = self.call(&int, &name, &[(f, rounded)]);
        if of.bits < 64 && bits < 64 {
            return found;
        }
        let none = self.op(&format!("fcmp uno {f} {value}, 0.0"));
        let highest = 1_u64 << (bits - 1);
        self.op(&format!("select i1 {none}, {int} {highest}, {int} {found}"))
    }
}
