//! Translates straight-line PTX assembly to a function in LLVM text.
//!
//! ```text
//! let text = function("add.s32 $0, $1, $2;", &[Slot::Int(32)], &[Slot::Int(32), Slot::Int(32)], &[], "f")?;
//! ```
//!
//! Flow: the text is parsed ([`read`]); each register becomes a stack variable, which LLVM promotes; each
//! instruction becomes equivalent LLVM instructions ([`arithmetic`], [`bits`], [`floating`], [`memory`],
//! [`threads`]). A predicated instruction becomes a branch.
//!
//! # Invariants
//! An unknown instruction, form or modifier is an error, never ignored.

mod arithmetic;
mod bits;
mod floating;
mod memory;
mod read;
mod threads;

use read::{Instruction, Operand};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The LLVM type of an operand of the assembly statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandType {
    Int(u32),
    Half,
    Float,
    Double,
    Pointer,
}

impl OperandType {
    fn bits(self) -> u32 {
        match self {
            OperandType::Int(bits) => bits,
            OperandType::Half => 16,
            OperandType::Float => 32,
            OperandType::Double | OperandType::Pointer => 64,
        }
    }

    fn name(self) -> String {
        match self {
            OperandType::Int(bits) => format!("i{bits}"),
            OperandType::Half => "half".into(),
            OperandType::Float => "float".into(),
            OperandType::Double => "double".into(),
            OperandType::Pointer => "ptr".into(),
        }
    }

    /// Returns the casts to an integer of equal width and back.
    fn cast(self) -> Option<(&'static str, &'static str)> {
        match self {
            OperandType::Int(_) => None,
            OperandType::Half | OperandType::Float | OperandType::Double => {
                Some(("bitcast", "bitcast"))
            }
            OperandType::Pointer => Some(("ptrtoint", "inttoptr")),
        }
    }
}

/// The interpretation of a register by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    /// `b` bits, `u` and `s` integers, `f` floating-point numbers, `p` predicates.
    pub kind: char,
    pub bits: u32,
}

impl Type {
    /// Parses `u32`, `f64` and similar type names.
    pub fn read(word: &str) -> Option<Type> {
        if word == "pred" {
            return Some(PREDICATE);
        }
        let kind = word.chars().next().filter(|c| "busf".contains(*c))?;
        let bits = word[1..].parse().ok()?;
        let fits = match kind {
            'f' => matches!(bits, 16 | 32 | 64),
            _ => matches!(bits, 8 | 16 | 32 | 64),
        };
        fits.then_some(Type { kind, bits })
    }

    fn float(self) -> &'static str {
        match self.bits {
            16 => "half",
            32 => "float",
            _ => "double",
        }
    }
}

const PREDICATE: Type = Type { kind: 'p', bits: 1 };
const WORD: Type = Type {
    kind: 'u',
    bits: 32,
};

/// `op.modifiers.type operands`.
#[derive(Clone, Copy)]
struct InstructionForm<'a> {
    op: &'a str,
    modifiers: &'a [&'a str],
    ty: Type,
    operands: &'a [Operand],
}

/// Returns the function `name` for `text`; `tied` gives for each input the result that it initialises.
///
/// # Errors
/// The instruction without a counterpart.
pub(super) fn function(
    text: &str,
    results: &[OperandType],
    inputs: &[OperandType],
    tied: &[Option<usize>],
    name: &str,
) -> Result<String, String> {
    let (registers, instructions) = read::read(text)?;
    let mut writer = Writer::default();
    let params: Vec<String> = inputs
        .iter()
        .enumerate()
        .map(|(at, slot)| format!("{} %a{at}", slot.name()))
        .collect();
    for (register, bits) in registers {
        writer.add_register(&register, bits);
    }
    for (at, slot) in results.iter().enumerate() {
        writer.add_register(&format!("${at}"), slot.bits());
    }
    for (at, slot) in inputs.iter().enumerate() {
        let own = format!("${}", results.len() + at);
        let tied = tied.get(at).copied().flatten();
        match tied {
            None => writer.add_register(&own, slot.bits()),
            Some(result) if results[result].bits() == slot.bits() => {
                // Input and result are one register with two names.
                let same = (format!("${result}"), slot.bits());
                writer.registers.insert(own.clone(), same);
            }
            Some(_) => return Err(text.into()),
        }
        let value = match slot.cast() {
            None => format!("%a{at}"),
            Some((cast, _)) => writer.op(&format!(
                "{cast} {} %a{at} to i{}",
                slot.name(),
                slot.bits()
            )),
        };
        writer.store_register(&own, &value).ok_or(text)?;
    }
    for one in &instructions {
        writer.instruction(one).ok_or_else(|| one.text.clone())?;
    }
    let (returned, ty) = writer.return_text(results).ok_or(text)?;
    let mut out = String::new();
    for declared in &writer.declared {
        let _ = writeln!(out, "declare {declared}");
    }
    let _ = writeln!(
        out,
        "define {ty} @{name}({}) alwaysinline nounwind {{\n{}{}{returned}}}",
        params.join(", "),
        writer.places,
        writer.out
    );
    Ok(out)
}

/// Writes a function.
#[derive(Default)]
struct Writer {
    /// The stack variables of the registers.
    places: String,
    out: String,
    /// Stack variable and width in bits of each register.
    registers: BTreeMap<String, (String, u32)>,
    declared: BTreeSet<String>,
    next: usize,
    /// True if an earlier instruction outside branches left a carry.
    carried: bool,
}

impl Writer {
    fn add_register(&mut self, register: &str, bits: u32) {
        let place = (register.to_string(), bits);
        self.registers.insert(register.to_string(), place);
        let _ = writeln!(
            self.places,
            "  %\"{register}\" = alloca i64\n  store i64 0, ptr %\"{register}\""
        );
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Writes an instruction with a result; returns its name.
    fn op(&mut self, text: &str) -> String {
        let at = self.fresh();
        let _ = writeln!(self.out, "  %v{at} = {text}");
        format!("%v{at}")
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }

    /// Writes a call and records the declaration `ty @name(params)`.
    fn call(&mut self, ty: &str, name: &str, args: &[(&str, String)]) -> String {
        let params: Vec<&str> = args.iter().map(|(ty, _)| *ty).collect();
        self.declared
            .insert(format!("{ty} @{name}({})", params.join(", ")));
        let args: Vec<String> = args.iter().map(|(ty, v)| format!("{ty} {v}")).collect();
        let text = format!("call {ty} @{name}({})", args.join(", "));
        if ty == "void" {
            self.line(&text);
            return String::new();
        }
        self.op(&text)
    }

    fn bits(&self, register: &str) -> Option<u32> {
        self.registers.get(register).map(|(_, bits)| *bits)
    }

    fn store_register(&mut self, register: &str, value: &str) -> Option<()> {
        let (place, bits) = self.registers.get(register)?;
        let text = format!("store i{bits} {value}, ptr %\"{place}\"");
        self.line(&text);
        Some(())
    }

    fn load_register(&mut self, register: &str) -> Option<String> {
        let (place, bits) = self.registers.get(register)?;
        let text = format!("load i{bits}, ptr %\"{place}\"");
        Some(self.op(&text))
    }

    /// Returns an operand as an integer of `bits` bits. The register has equal width, or is wider and
    /// truncated; a predicate must have equal width.
    fn int_operand(&mut self, operand: &Operand, bits: u32) -> Option<String> {
        let mask = u64::MAX >> (64 - bits);
        match operand {
            Operand::Number(value) => Some((value & mask).to_string()),
            Operand::Float(value, has) => (*has == bits).then(|| value.to_string()),
            Operand::Not(name) if bits == 1 && self.bits(name) == Some(1) => {
                let value = self.load_register(name)?;
                Some(self.op(&format!("xor i1 {value}, true")))
            }
            Operand::Named(name) => match self.bits(name) {
                None => self.special_register(name, bits),
                Some(has) if has == bits => self.load_register(name),
                Some(has) if has > bits && bits > 1 => {
                    let value = self.load_register(name)?;
                    Some(self.op(&format!("trunc i{has} {value} to i{bits}")))
                }
                Some(_) => None,
            },
            _ => None,
        }
    }

    /// Returns an operand as a floating-point number.
    fn float_operand(&mut self, operand: &Operand, ty: Type) -> Option<String> {
        if let Operand::Number(_) = operand {
            return None;
        }
        let value = self.int_operand(operand, ty.bits)?;
        Some(self.op(&format!("bitcast i{} {value} to {}", ty.bits, ty.float())))
    }

    /// Writes a value to a register of equal width, or sign- or zero-extends it to a wider register.
    fn write_register(&mut self, to: &Operand, value: &str, ty: Type) -> Option<()> {
        let Operand::Named(name) = to else {
            return None;
        };
        let has = self.bits(name)?;
        if has == ty.bits {
            return self.store_register(name, value);
        }
        if has < ty.bits || ty.bits == 1 {
            return None;
        }
        let extend = if ty.kind == 's' { "sext" } else { "zext" };
        let wide = self.op(&format!("{extend} i{} {value} to i{has}", ty.bits));
        self.store_register(name, &wide)
    }

    /// Writes a floating-point number to a register.
    fn write_float(&mut self, to: &Operand, value: &str, ty: Type) -> Option<()> {
        let bits = self.op(&format!("bitcast {} {value} to i{}", ty.float(), ty.bits));
        self.write_register(to, &bits, ty)
    }

    fn instruction(&mut self, one: &Instruction) -> Option<()> {
        let Some((predicate, holds)) = &one.when else {
            return self.unpredicated(one);
        };
        // Instructions that synchronize a warp or block are not supported in divergent branches.
        if threads::is_collective(&one.name) || self.bits(predicate) != Some(1) {
            return None;
        }
        let condition = self.load_register(predicate)?;
        let (at, carried) = (self.fresh(), self.carried);
        let (then, other) = match holds {
            true => ("then", "end"),
            false => ("end", "then"),
        };
        self.line(&format!(
            "br i1 {condition}, label %{then}{at}, label %{other}{at}"
        ));
        let _ = writeln!(self.out, "then{at}:");
        self.unpredicated(one)?;
        self.carried = carried;
        self.line(&format!("br label %end{at}"));
        let _ = writeln!(self.out, "end{at}:");
        Some(())
    }

    fn unpredicated(&mut self, one: &Instruction) -> Option<()> {
        let name: Vec<&str> = one.name.iter().map(String::as_str).collect();
        let before = self.out.len();
        for attempt in [Writer::memory, Writer::threads, Writer::arithmetic] {
            if attempt(self, &name, &one.operands).is_some() {
                return Some(());
            }
            self.out.truncate(before);
        }
        None
    }

    /// Returns the return instruction and the return type of the function.
    fn return_text(&mut self, results: &[OperandType]) -> Option<(String, String)> {
        let mut values = Vec::new();
        for (at, slot) in results.iter().enumerate() {
            let bits = self.load_register(&format!("${at}"))?;
            values.push(match slot.cast() {
                None => bits,
                Some((_, cast)) => self.op(&format!(
                    "{cast} i{} {bits} to {}",
                    slot.bits(),
                    slot.name()
                )),
            });
        }
        let names: Vec<String> = results.iter().map(|slot| slot.name()).collect();
        match &values[..] {
            [] => Some(("  ret void\n".into(), "void".into())),
            [only] => Some((format!("  ret {} {only}\n", names[0]), names[0].clone())),
            _ => {
                let ty = format!("{{ {} }}", names.join(", "));
                let mut whole = "poison".to_string();
                for (at, value) in values.iter().enumerate() {
                    whole = self.op(&format!(
                        "insertvalue {ty} {whole}, {} {value}, {at}",
                        names[at]
                    ));
                }
                Some((format!("  ret {ty} {whole}\n"), ty))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(text: &str) -> Result<String, String> {
        let [word, float] = [OperandType::Int(32), OperandType::Float];
        let inputs = [word, word, float, OperandType::Int(64)];
        function(text, &[word, float], &inputs, &[], "f")
    }

    #[test]
    fn error_names_unknown_instruction() {
        translate("add.s32 $0, $2, $3;").expect("it is known");
        for text in [
            // An unknown carry, or a carry under a predicate.
            "addc.u32 $0, $2, $3;",
            "{ .reg .pred p; setp.eq.u32 p, $2, 0; @p add.cc.u32 $0, $2, $3; addc.u32 $0, 0, 0; }",
            "madc.lo.u32 $0, $2, $3, 0;",
            // Literals of a type unlike the instruction's.
            "add.f32 $1, $4, 1;",
            "add.f32 $1, $4, 0d3ff0000000000000;",
            "add.f64 $1, $4, 0f3f800000;",
            // Unsupported rounding modes, saturation and NaN modes.
            "add.rz.f32 $1, $4, $4;",
            "add.sat.f32 $1, $4, $4;",
            "add.sat.s32 $0, $2, $3;",
            "cvt.f32.s32 $1, $2;",
            "cvt.s32.f32 $0, $4;",
            "cvt.rzi.sat.s32.f32 $0, $4;",
            "cvt.rzi.f32.f32 $1, $4;",
            "min.NaN.f32 $1, $4, $4;",
            "fma.rn.relu.f16 $1, $4, $4, $4;",
            "mul24.lo.u32 $0, $2, $3;",
            "prmt.b32.f4e $0, $2, $3, $2;",
            "vadd.u32.u32.u32.sat $0, $2, $3;",
            "setp.lt.ftz.s32 $0, $2, $3;",
            "slct.u32.s32 $0, $2, $3, $2;",
            // 32-bit addresses, cluster memory, unsupported memory orders.
            "ld.shared.u32 $0, [$2];",
            "ld.shared::cluster.u32 $0, [$5];",
            "ld.release.gpu.u32 $0, [$5];",
            "st.acquire.gpu.u32 [$5], $2;",
            "ld.mmio.relaxed.sys.u32 $0, [$5];",
            "atom.global.cas.b16 $0, [$5], 0, 1;",
            "atom.add.noftz.f16x2 $0, [$5], $2;",
            "cp.async.ca.shared.global [$5], [$5], 16;",
            "fence.proxy.async;",
            // Unsupported barriers, and synchronization in a branch.
            "bar.sync 1;",
            "bar.sync 0, 64;",
            "bar.arrive 0, 64;",
            "{ .reg .pred p; setp.eq.u32 p, $2, 0; @p bar.sync 0; }",
            "shfl.idx.b32 $0, $2, 0, 31;",
            "match.all.sync.b32 $0, $2, -1;",
            "redux.sync.add.s32 $0, $2, -1;",
            "elect.sync _|$0, -1;",
            "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {$0}, {$2}, {$3}, {$2};",
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {$0}, [$5];",
            // Unsupported special registers, and registers of unlike width.
            "mov.u32 $0, %smid;",
            "mov.u32 $0, %nwarpid;",
            "mov.u64 $5, %tid.x;",
            "mov.u32 $0, WARP_SZ;",
            "bra done;",
            "call f;",
        ] {
            let refused = translate(text).expect_err(text);
            assert!(text.contains(&refused), "{text}: {refused}");
        }
    }

    #[test]
    fn tied_input_has_width_of_result() {
        let text = "add.u32 $0, $0, 1;";
        let tied = [Some(0)];
        function(
            text,
            &[OperandType::Int(32)],
            &[OperandType::Float],
            &tied,
            "f",
        )
        .expect("both have 32");
        function(
            text,
            &[OperandType::Int(32)],
            &[OperandType::Int(64)],
            &tied,
            "f",
        )
        .expect_err("they differ");
    }
}
