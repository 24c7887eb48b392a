//! The printer of types and constants.

use super::lex::{is_bare, quoted};
use crate::{Const, ConstId, ConstKind, FloatKind, Type, TypeId, Unit};
use std::collections::HashMap;
use std::fmt::Write;

/// Returns `name` after a sigil, quoted if necessary.
pub(super) fn sigil(sign: char, name: &str) -> String {
    match is_bare(name) {
        true => format!("{sign}{name}"),
        false => format!("{sign}{}", quoted(name)),
    }
}

/// The printer of types. Named structures are printed by name, to bound the length of a type's text.
#[derive(Debug)]
pub(super) struct TypePrinter<'a> {
    unit: &'a Unit,
    /// The numbers of structures that share a name with an earlier structure.
    duplicate_names: HashMap<TypeId, u32>,
}

/// Returns the keyword of a floating-point format.
pub(super) fn float_word(kind: FloatKind) -> &'static str {
    match kind {
        FloatKind::F16 => "f16",
        FloatKind::BF16 => "bf16",
        FloatKind::F32 => "f32",
        FloatKind::F64 => "f64",
        FloatKind::X86F80 => "f80",
        FloatKind::F128 => "f128",
        FloatKind::PpcF128 => "ppc128",
    }
}

impl<'a> TypePrinter<'a> {
    pub fn new(unit: &'a Unit) -> Self {
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut duplicate_names = HashMap::new();
        for (id, ty) in unit.types.iter() {
            if let Type::Struct {
                name: Some(name), ..
            } = ty
            {
                let number = seen.entry(name).or_insert(0);
                if *number > 0 {
                    duplicate_names.insert(id, *number);
                }
                *number += 1;
            }
        }
        TypePrinter {
            unit,
            duplicate_names,
        }
    }

    /// Returns the text of a type.
    pub fn text(&self, id: TypeId) -> String {
        let mut out = String::new();
        self.write(&mut out, id);
        out
    }

    /// Appends the text of a type to `out`.
    pub fn write(&self, out: &mut String, id: TypeId) {
        match self.unit.types.get(id) {
            Type::Void => out.push_str("void"),
            Type::Int(bits) => push(out, format_args!("i{bits}")),
            Type::Float(kind) => out.push_str(float_word(*kind)),
            Type::Ptr(0) => out.push_str("ptr"),
            Type::Ptr(space) => push(out, format_args!("ptr({space})")),
            Type::Vector {
                elem,
                len,
                scalable,
            } => {
                out.push_str(if *scalable { "<vscale x " } else { "<" });
                push(out, format_args!("{len} x "));
                self.write(out, *elem);
                out.push('>');
            }
            Type::Array { elem, len } => {
                push(out, format_args!("[{len} x "));
                self.write(out, *elem);
                out.push(']');
            }
            Type::Struct {
                name: Some(name), ..
            } => {
                out.push_str(&sigil('$', name));
                if let Some(number) = self.duplicate_names.get(&id) {
                    push(out, format_args!("#{number}"));
                }
            }
            Type::Struct { fields, packed, .. } => self.write_fields(out, fields, *packed),
            Type::Func {
                result,
                params,
                variadic,
            } => {
                out.push_str("fn(");
                self.write_list(out, params);
                if *variadic {
                    out.push_str(if params.is_empty() { "..." } else { ", ..." });
                }
                out.push_str(") -> ");
                self.write(out, *result);
            }
            Type::Opaque(text) => push(out, format_args!("opaque {}", quoted(text))),
        }
    }

    /// Appends the fields of a structure with brackets.
    pub fn write_fields(&self, out: &mut String, fields: &[TypeId], packed: bool) {
        out.push_str(if packed { "<{" } else { "{" });
        self.write_list(out, fields);
        out.push_str(if packed { "}>" } else { "}" });
    }

    fn write_list(&self, out: &mut String, types: &[TypeId]) {
        for (i, ty) in types.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.write(out, *ty);
        }
    }

    // ---- constants -------------------------------------------------------------------------

    /// Appends a constant in a context that does not imply the constant's type.
    pub fn write_const(&self, out: &mut String, id: ConstId) {
        let constant = self.unit.constant(id);
        if !implies_type(self.unit, constant) {
            self.write(out, constant.ty);
            out.push(' ');
        }
        self.write_bare(out, constant);
    }

    fn write_member(&self, out: &mut String, id: ConstId, expected: Option<TypeId>) {
        let constant = self.unit.constant(id);
        match expected == Some(constant.ty) {
            true => self.write_bare(out, constant),
            false => self.write_const(out, id),
        }
    }

    fn write_bare(&self, out: &mut String, constant: &Const) {
        let ty = constant.ty;
        match &constant.kind {
            ConstKind::Int(n) => out.push_str(&int_text(self.unit, ty, *n)),
            ConstKind::Float(bits) => out.push_str(&float_text(self.unit, ty, *bits)),
            ConstKind::Zero if self.unit.types.is_ptr(ty) => out.push_str("null"),
            ConstKind::Zero => out.push_str("zero"),
            ConstKind::Undef => out.push_str("undef"),
            ConstKind::Poison => out.push_str("poison"),
            ConstKind::Aggregate(members) => self.write_aggregate(out, ty, members),
            ConstKind::Func(func) => {
                out.push_str(&sigil('@', &self.unit.functions[*func].name));
            }
            ConstKind::Global { global, offset } => {
                out.push_str(&sigil('@', &self.unit.globals[*global].name));
                out.push_str(&offset_text(*offset));
            }
            ConstKind::DanglingAddress(n) => push(out, format_args!("no_object {n}")),
            ConstKind::Foreign(n) => push(out, format_args!("foreign {n}")),
        }
    }

    fn write_aggregate(&self, out: &mut String, ty: TypeId, members: &[ConstId]) {
        let fields = match self.unit.types.get(ty) {
            Type::Struct { fields, .. } => fields.as_slice(),
            _ => &[],
        };
        let elem = match self.unit.types.get(ty) {
            Type::Vector { elem, .. } | Type::Array { elem, .. } => Some(*elem),
            _ => None,
        };
        if let (Some(_), [first, second, ..]) = (elem, members)
            && first == second
            && members.iter().all(|m| m == first)
        {
            push(out, format_args!("splat {} ", members.len()));
            return self.write_member(out, *first, elem);
        }
        out.push('{');
        for (i, member) in members.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.write_member(out, *member, elem.or(fields.get(i).copied()));
        }
        out.push('}');
    }
}

/// Returns `+8`, `-8`, or nothing for 0.
pub(super) fn offset_text(offset: i64) -> String {
    match offset {
        0 => String::new(),
        n if n > 0 => format!("+{n}"),
        n => n.to_string(),
    }
}

fn push(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// Returns whether a constant's text determines the constant's type.
fn implies_type(unit: &Unit, constant: &Const) -> bool {
    let ty = unit.types.get(constant.ty);
    match constant.kind {
        ConstKind::Int(n) => *ty == Type::Int(64) || (*ty == Type::Int(1) && n < 2),
        ConstKind::Float(bits) => {
            *ty == Type::Float(FloatKind::F64) && f64::from_bits(bits as u64).is_finite()
        }
        ConstKind::Zero | ConstKind::Func(_) | ConstKind::Global { .. } => *ty == Type::Ptr(0),
        _ => false,
    }
}

fn int_text(unit: &Unit, ty: TypeId, n: u128) -> String {
    match unit.types.get(ty) {
        Type::Int(1) if n < 2 => (n == 1).to_string(),
        Type::Int(bits @ 2..=128) => (((n << (128 - bits)) as i128) >> (128 - bits)).to_string(),
        _ => n.to_string(),
    }
}

/// Returns decimal text if the value reads back exactly, the bits in hexadecimal otherwise.
fn float_text(unit: &Unit, ty: TypeId, bits: u128) -> String {
    match unit.types.get(ty) {
        Type::Float(FloatKind::F64) if f64::from_bits(bits as u64).is_finite() => {
            format!("{:?}", f64::from_bits(bits as u64))
        }
        Type::Float(FloatKind::F32) if f32::from_bits(bits as u32).is_finite() => {
            format!("{:?}", f32::from_bits(bits as u32))
        }
        _ => format!("{bits:#x}"),
    }
}
