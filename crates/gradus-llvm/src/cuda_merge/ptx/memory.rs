//! PTX memory instructions.

use super::read::Operand;
use super::{Type, Writer};

/// Modifiers of a memory access.
#[derive(Default)]
struct Access {
    volatile: bool,
    /// LLVM's keyword for the order of an atomic access.
    order: Option<&'static str>,
    /// The number of vector elements.
    count: u32,
    other: Vec<String>,
}

impl Access {
    /// Reads the modifiers of a memory access. All state spaces are one memory. Cache hints are ignored,
    /// except hints that force a memory access, which make the access volatile.
    fn read(modifiers: &[&str]) -> Access {
        let mut access = Access {
            count: 1,
            ..Access::default()
        };
        for word in modifiers {
            match *word {
                "volatile" | "cv" | "wt" => access.volatile = true,
                "relaxed" => access.order = Some("monotonic"),
                "acquire" => access.order = Some("acquire"),
                "release" => access.order = Some("release"),
                "acq_rel" => access.order = Some("acq_rel"),
                "v2" => access.count = 2,
                "v4" => access.count = 4,
                "weak" | "cta" | "cluster" | "gpu" | "sys" => {}
                "global" | "shared" | "local" | "const" | "shared::cta" => {}
                "ca" | "cg" | "cs" | "lu" | "wb" | "nc" => {}
                hint if hint.starts_with("L1::") || hint.starts_with("L2::") => {}
                other => access.other.push(other.to_string()),
            }
        }
        access
    }
}

impl Writer {
    /// Translates a memory instruction; `None` if the form is unknown.
    pub(super) fn memory(&mut self, name: &[&str], operands: &[Operand]) -> Option<()> {
        match (name, operands) {
            (["prefetch" | "prefetchu", ..], [at]) => self.address(at).map(|_| ()),
            (["ld" | "ldu", modifiers @ .., word], [to, at]) => {
                self.load(&Access::read(modifiers), Type::read(word)?, to, at)
            }
            (["st", modifiers @ .., word], [at, from]) => {
                self.store(&Access::read(modifiers), Type::read(word)?, at, from)
            }
            (["atom", modifiers @ .., word], [to, at, with @ ..]) => {
                let ty = Type::read(word)?;
                let old = self.atomic(&Access::read(modifiers), ty, at, with)?;
                self.write_register(to, &old, Type { kind: 'b', ..ty })
            }
            (["red", modifiers @ .., word], [at, with @ ..]) => {
                self.atomic(&Access::read(modifiers), Type::read(word)?, at, with)?;
                Some(())
            }
            _ => None,
        }
    }

    /// Emits a generic 64-bit address.
    fn address(&mut self, operand: &Operand) -> Option<String> {
        let Operand::Memory(base, offset) = operand else {
            return None;
        };
        let Operand::Named(name) = &**base else {
            return None;
        };
        if self.bits(name) != Some(64) {
            return None;
        }
        let value = self.load_register(name)?;
        let at = self.op(&format!("inttoptr i64 {value} to ptr"));
        Some(match offset {
            0 => at,
            _ => self.op(&format!("getelementptr i8, ptr {at}, i64 {offset}")),
        })
    }

    fn load(&mut self, access: &Access, ty: Type, to: &Operand, at: &Operand) -> Option<()> {
        let at = self.address(at)?;
        let all = ty.bits * access.count;
        if !access.other.is_empty() || ty.kind == 'p' || all > 256 {
            return None;
        }
        let hint = if access.volatile { "volatile " } else { "" };
        let align = all / 8;
        // A vector access is a single access, as on a GPU.
        let whole = match access.order {
            Some("release" | "acq_rel") => return None,
            Some(_) if all > 128 => return None,
            Some(order) => self.op(&format!(
                "load atomic {hint}i{all}, ptr {at} {order}, align {align}"
            )),
            None => self.op(&format!("load {hint}i{all}, ptr {at}, align {align}")),
        };
        let parts = match (to, access.count) {
            (Operand::Vector(parts), count) if parts.len() == count as usize => parts,
            (one, 1) => return self.write_register(one, &whole, ty),
            _ => return None,
        };
        for (place, part) in parts.iter().enumerate() {
            let there = self.op(&format!(
                "lshr i{all} {whole}, {}",
                ty.bits as usize * place
            ));
            let value = match all == ty.bits {
                true => there,
                false => self.op(&format!("trunc i{all} {there} to i{}", ty.bits)),
            };
            self.write_register(part, &value, ty)?;
        }
        Some(())
    }

    fn store(&mut self, access: &Access, ty: Type, at: &Operand, from: &Operand) -> Option<()> {
        let at = self.address(at)?;
        let all = ty.bits * access.count;
        if !access.other.is_empty() || ty.kind == 'p' || all > 256 {
            return None;
        }
        let one = std::slice::from_ref(from);
        let parts = match (from, access.count) {
            (Operand::Vector(parts), count) if parts.len() == count as usize => &parts[..],
            (_, 1) => one,
            _ => return None,
        };
        let mut whole = "0".to_string();
        for (place, part) in parts.iter().enumerate() {
            let part = self.int_operand(part, ty.bits)?;
            let wide = match all == ty.bits {
                true => part,
                false => self.op(&format!("zext i{} {part} to i{all}", ty.bits)),
            };
            let there = self.op(&format!("shl i{all} {wide}, {}", ty.bits as usize * place));
            whole = self.op(&format!("or i{all} {whole}, {there}"));
        }
        let hint = if access.volatile { "volatile " } else { "" };
        let align = all / 8;
        match access.order {
            Some("acquire" | "acq_rel") => return None,
            Some(_) if all > 128 => return None,
            Some(order) => self.line(&format!(
                "store atomic {hint}i{all} {whole}, ptr {at} {order}, align {align}"
            )),
            None => self.line(&format!(
                "store {hint}i{all} {whole}, ptr {at}, align {align}"
            )),
        }
        Some(())
    }

    /// Emits an atomic operation; returns the old value.
    fn atomic(
        &mut self,
        access: &Access,
        ty: Type,
        at: &Operand,
        with: &[Operand],
    ) -> Option<String> {
        let n = ty.bits;
        let [what] = &access.other[..] else {
            return None;
        };
        if access.count != 1 || !matches!(n, 32 | 64) {
            return None;
        }
        let at = self.address(at)?;
        let order = access.order.unwrap_or("monotonic");
        if let ("cas", [expected, new]) = (what.as_str(), with) {
            let (expected, new) = (self.int_operand(expected, n)?, self.int_operand(new, n)?);
            let failure = match order {
                "acquire" | "acq_rel" => "acquire",
                _ => "monotonic",
            };
            let both = self.op(&format!(
                "cmpxchg ptr {at}, i{n} {expected}, i{n} {new} {order} {failure}"
            ));
            return Some(self.op(&format!("extractvalue {{ i{n}, i1 }} {both}, 0")));
        }
        let [with] = with else { return None };
        if ty.kind == 'f' {
            if what != "add" {
                return None;
            }
            let (f, value) = (ty.float(), self.float_operand(with, ty)?);
            let old = self.op(&format!("atomicrmw fadd ptr {at}, {f} {value} {order}"));
            return Some(self.op(&format!("bitcast {f} {old} to i{n}")));
        }
        let op = match (what.as_str(), ty.kind) {
            ("add", 'u' | 's') => "add",
            ("min", 's') => "min",
            ("max", 's') => "max",
            ("min", 'u') => "umin",
            ("max", 'u') => "umax",
            ("and" | "or" | "xor", 'b') => what,
            ("exch", 'b') => "xchg",
            ("inc", 'u') => "uinc_wrap",
            ("dec", 'u') => "udec_wrap",
            _ => return None,
        };
        let value = self.int_operand(with, n)?;
        Some(self.op(&format!("atomicrmw {op} ptr {at}, i{n} {value} {order}")))
    }
}
