//! The parser of types and constants.

use super::lex::TokenKind;
use super::parse::Parser;
use super::{MAX_NESTING, TextError};
use crate::consts::{MIN_OBJECT_ADDRESS, float_bits};
use crate::{ConstId, ConstKind, FloatKind, Symbol, Type, TypeId};

/// The maximum number of elements of a `splat`.
const MAX_SPLAT: u32 = 1 << 20;

fn float_kind(word: &str) -> Option<FloatKind> {
    Some(match word {
        "f16" => FloatKind::F16,
        "bf16" => FloatKind::BF16,
        "f32" => FloatKind::F32,
        "f64" => FloatKind::F64,
        "f80" => FloatKind::X86F80,
        "f128" => FloatKind::F128,
        "ppc128" => FloatKind::PpcF128,
        _ => return None,
    })
}

fn int_bits(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('i')?;
    let bits: u32 = digits.parse().ok()?;
    (digits.bytes().all(|b| b.is_ascii_digit()) && (1..=1 << 23).contains(&bits)).then_some(bits)
}

impl Parser {
    // ---- types -----------------------------------------------------------------------------

    /// Parses a type.
    pub(super) fn ty(&mut self) -> Result<TypeId, TextError> {
        self.nested_type(0)
    }

    /// Returns whether the next token begins a type.
    pub(super) fn at_type(&self) -> bool {
        match self.peek() {
            TokenKind::Word(word) => {
                matches!(word.as_str(), "void" | "ptr" | "fn" | "opaque")
                    || float_kind(word).is_some()
                    || int_bits(word).is_some()
            }
            TokenKind::TypeName(_) | TokenKind::Punct("<" | "[" | "{") => true,
            _ => false,
        }
    }

    fn nested_type(&mut self, depth: u32) -> Result<TypeId, TextError> {
        if depth > MAX_NESTING {
            return self.error(format!(
                "the type is nested more than {MAX_NESTING} levels deep"
            ));
        }
        if !self.at_type() {
            return self.error("expected a type");
        }
        let token = self.advance();
        let ty = match &token.kind {
            TokenKind::TypeName(name) => {
                let number = match *self.peek() {
                    TokenKind::Hash(number) => {
                        self.at += 1;
                        number
                    }
                    _ => 0,
                };
                return match self.type_names.get(&(name.clone(), number)) {
                    Some(id) => Ok(*id),
                    None => self.error_at(&token, format!("no earlier line defines `${name}`")),
                };
            }
            TokenKind::Punct("[") => {
                let len = self.number()?;
                self.expect_x()?;
                let elem = self.nested_type(depth + 1)?;
                self.expect("]")?;
                Type::Array { elem, len }
            }
            TokenKind::Punct("{") => {
                self.at -= 1;
                Type::Struct {
                    name: None,
                    fields: self.list("{", "}", |p| p.nested_type(depth + 1))?,
                    packed: false,
                }
            }
            TokenKind::Punct(_) if self.is_punct("{") => {
                let fields = self.list("{", "}", |p| p.nested_type(depth + 1))?;
                self.expect(">")?;
                Type::Struct {
                    name: None,
                    fields,
                    packed: true,
                }
            }
            TokenKind::Punct(_) => self.vector_type(depth)?,
            TokenKind::Word(word) => self.word_type(&word.clone(), depth)?,
            _ => return self.error_at(&token, "expected a type"),
        };
        Ok(self.unit.types.intern(ty))
    }

    fn vector_type(&mut self, depth: u32) -> Result<Type, TextError> {
        let scalable = self.eat_word("vscale");
        if scalable {
            self.expect_x()?;
        }
        let len = self.number()?;
        self.expect_x()?;
        let elem = self.nested_type(depth + 1)?;
        self.expect(">")?;
        Ok(Type::Vector {
            elem,
            len,
            scalable,
        })
    }

    fn word_type(&mut self, word: &str, depth: u32) -> Result<Type, TextError> {
        if let Some(bits) = int_bits(word) {
            return Ok(Type::Int(bits));
        }
        if let Some(kind) = float_kind(word) {
            return Ok(Type::Float(kind));
        }
        match word {
            "void" => Ok(Type::Void),
            "opaque" => Ok(Type::Opaque(self.text()?)),
            "ptr" if self.eat("(") => {
                let space = self.number()?;
                self.expect(")")?;
                Ok(Type::Ptr(space))
            }
            "ptr" => Ok(Type::Ptr(0)),
            _ => {
                let mut variadic = false;
                let params = self.list("(", ")", |p| {
                    variadic = p.eat("...");
                    match variadic {
                        true => Ok(None),
                        false => p.nested_type(depth + 1).map(Some),
                    }
                })?;
                self.expect("->")?;
                let result = self.nested_type(depth + 1)?;
                Ok(Type::Func {
                    result,
                    params: params.into_iter().flatten().collect(),
                    variadic,
                })
            }
        }
    }

    fn expect_x(&mut self) -> Result<(), TextError> {
        match self.eat_word("x") {
            true => Ok(()),
            false => self.error("expected `x`"),
        }
    }

    /// Parses `$name = {fields}`, after the keyword `type`.
    pub(super) fn named_type(&mut self) -> Result<(), TextError> {
        let token = self.advance();
        let TokenKind::TypeName(name) = &token.kind else {
            return self.error_at(&token, "expected a name with `$`");
        };
        let number = match *self.peek() {
            TokenKind::Hash(number) => {
                self.at += 1;
                number
            }
            _ => 0,
        };
        self.expect("=")?;
        let packed = self.eat("<");
        let fields = self.list("{", "}", Self::ty)?;
        if packed {
            self.expect(">")?;
        }
        let id = self.unit.types.intern(Type::Struct {
            name: Some(name.clone()),
            fields,
            packed,
        });
        match self.type_names.insert((name.clone(), number), id) {
            None => Ok(()),
            Some(_) => self.error_at(&token, format!("`${name}` is defined twice")),
        }
    }

    // ---- constants -------------------------------------------------------------------------

    /// Parses a constant. An explicit type precedes the literal; otherwise the literal determines the type.
    pub(super) fn constant(&mut self) -> Result<ConstId, TextError> {
        self.nested_constant(None, 0)
    }

    fn nested_constant(
        &mut self,
        expected: Option<TypeId>,
        depth: u32,
    ) -> Result<ConstId, TextError> {
        if depth > MAX_NESTING {
            return self.error(format!(
                "the constant is nested more than {MAX_NESTING} levels deep"
            ));
        }
        let literal = expected.is_some() && self.is_punct("{");
        let expected = match !literal && self.at_type() {
            true => Some(self.ty()?),
            false => expected,
        };
        let ty = match expected {
            Some(ty) => ty,
            None => self.literal_type()?,
        };
        let kind = self.literal(ty, depth)?;
        Ok(self.unit.consts.intern(ty, kind))
    }

    /// Returns the type of a literal without an explicit type.
    fn literal_type(&mut self) -> Result<TypeId, TextError> {
        let needs_type = ["zero", "undef", "poison", "splat", "no_object", "foreign"];
        let ty = match self.peek() {
            TokenKind::Int(_) => Type::Int(64),
            TokenKind::Float(_) => Type::Float(FloatKind::F64),
            TokenKind::Symbol(_) => Type::Ptr(0),
            TokenKind::Word(word) if word == "null" => Type::Ptr(0),
            TokenKind::Word(word) if word == "true" || word == "false" => Type::Int(1),
            TokenKind::Word(word) if needs_type.contains(&word.as_str()) => {
                return self.error("this constant needs a type prefix");
            }
            _ => return self.error("expected a value"),
        };
        Ok(self.unit.types.intern(ty))
    }

    fn literal(&mut self, ty: TypeId, depth: u32) -> Result<ConstKind, TextError> {
        let token = self.token().clone();
        match &token.kind {
            TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Hex(_) => self.number_literal(ty),
            TokenKind::Punct("{") => {
                let members = self.unit.types.get(ty).clone();
                let mut index = 0;
                let list = self.list("{", "}", |p| {
                    let expected = match &members {
                        Type::Struct { fields, .. } => fields.get(index).copied(),
                        Type::Vector { elem, .. } | Type::Array { elem, .. } => Some(*elem),
                        _ => None,
                    };
                    index += 1;
                    p.nested_constant(expected, depth + 1)
                })?;
                Ok(ConstKind::Aggregate(list))
            }
            TokenKind::Symbol(_) => match self.symbol()? {
                Symbol::Func(func) => Ok(ConstKind::Func(func)),
                Symbol::Global(global) => Ok(ConstKind::Global {
                    global,
                    offset: self.offset()?,
                }),
            },
            TokenKind::Word(word) => {
                self.at += 1;
                match word.as_str() {
                    "true" => Ok(ConstKind::Int(1)),
                    "false" => Ok(ConstKind::Int(0)),
                    "null" | "zero" => Ok(ConstKind::Zero),
                    "undef" => Ok(ConstKind::Undef),
                    "poison" => Ok(ConstKind::Poison),
                    "no_object" => self.no_object(ty),
                    "foreign" => Ok(ConstKind::Foreign(self.number()?)),
                    "splat" => self.splat(ty, depth),
                    _ => self.error_at(&token, format!("unknown constant `{word}`")),
                }
            }
            _ => self.error("expected a value"),
        }
    }

    fn no_object(&mut self, ty: TypeId) -> Result<ConstKind, TextError> {
        let number: u16 = self.number()?;
        if number == 0 || number >= MIN_OBJECT_ADDRESS || !self.unit.types.is_ptr(ty) {
            return self.error(format!(
                "`no_object` needs a pointer type and an address from 1 to {}",
                MIN_OBJECT_ADDRESS - 1
            ));
        }
        Ok(ConstKind::DanglingAddress(number))
    }

    fn splat(&mut self, ty: TypeId, depth: u32) -> Result<ConstKind, TextError> {
        let len: u32 = self.number()?;
        if len > MAX_SPLAT {
            return self.error(format!("`splat` has more than {MAX_SPLAT} elements"));
        }
        let elem = match *self.unit.types.get(ty) {
            Type::Vector { elem, .. } | Type::Array { elem, .. } => elem,
            _ => return self.error("`splat` needs a vector or array type"),
        };
        let member = self.nested_constant(Some(elem), depth + 1)?;
        Ok(ConstKind::Aggregate(vec![member; len as usize]))
    }

    /// Parses an optional offset after a symbol: `+8`, `-8`, or nothing for 0.
    pub(super) fn offset(&mut self) -> Result<i64, TextError> {
        match self.peek() {
            TokenKind::Punct("+") => {
                self.at += 1;
                self.number()
            }
            TokenKind::Int(text) if text.starts_with('-') => self.number(),
            _ => Ok(0),
        }
    }

    fn number_literal(&mut self, ty: TypeId) -> Result<ConstKind, TextError> {
        match *self.unit.types.get(ty) {
            Type::Int(bits) => self.int_literal(bits).map(ConstKind::Int),
            Type::Float(kind) => self.float_literal(kind).map(ConstKind::Float),
            _ => self.error("a number needs an integer or floating-point type"),
        }
    }

    fn int_literal(&mut self, bits: u32) -> Result<u128, TextError> {
        let mask = match bits {
            0..128 => (1u128 << bits) - 1,
            _ => u128::MAX,
        };
        let value = match self.peek() {
            TokenKind::Hex(digits) => u128::from_str_radix(digits, 16).ok(),
            TokenKind::Int(text) if text.starts_with('-') => {
                let least = -((mask >> 1) as i128) - 1;
                let n = text.parse::<i128>().ok().filter(|n| *n >= least);
                n.map(|n| n as u128 & mask)
            }
            TokenKind::Int(text) => text.parse().ok(),
            _ => return self.error("an integer cannot have a decimal point or an exponent"),
        };
        match value.filter(|n| *n <= mask) {
            Some(n) => {
                self.at += 1;
                Ok(n)
            }
            None => self.error(format!("the number does not fit into {bits} bits")),
        }
    }

    fn float_literal(&mut self, kind: FloatKind) -> Result<u128, TextError> {
        let bits = match self.peek() {
            TokenKind::Hex(digits) => u128::from_str_radix(digits, 16).ok(),
            TokenKind::Int(text) | TokenKind::Float(text) => match kind {
                FloatKind::F32 => text.parse::<f32>().ok().map(|x| u128::from(x.to_bits())),
                _ => text.parse::<f64>().ok().map(|x| float_bits(kind, x)),
            },
            _ => None,
        };
        let width = kind.bits();
        match bits.filter(|b| width == 128 || b >> width == 0) {
            Some(bits) => {
                self.at += 1;
                Ok(bits)
            }
            None => self.error("the number is not valid in this floating-point format"),
        }
    }

    /// Parses one number of a global's initial bytes and returns the bits.
    pub(super) fn number_bits(&mut self, elem: TypeId) -> Result<u64, TextError> {
        match self.number_literal(elem)? {
            ConstKind::Int(bits) | ConstKind::Float(bits) => Ok(bits as u64),
            _ => self.error("expected a number"),
        }
    }
}
