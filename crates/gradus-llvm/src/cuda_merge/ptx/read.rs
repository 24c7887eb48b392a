//! PTX parser: register declarations and instructions of straight-line assembly.

use std::collections::BTreeMap;

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A declared register, an operand of the assembly statement (`$0`), or a special register (`%laneid`).
    Named(String),
    /// An integer, in two's complement.
    Number(u64),
    /// The bits of a floating-point number, and its width in bits.
    Float(u64, u32),
    /// Memory at a base address plus an offset in bytes.
    Memory(Box<Operand>, i64),
    /// The elements of a vector.
    Vector(Vec<Operand>),
    /// A result, and the predicate result.
    WithPredicate(Box<Operand>, String),
    /// A negated predicate.
    Not(String),
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// The predicate register and the value under which the instruction executes.
    pub when: Option<(String, bool)>,
    /// The components of its name.
    pub name: Vec<String>,
    pub operands: Vec<Operand>,
    /// The source text.
    pub text: String,
}

/// A register's name and width in bits.
pub(super) type Register = (String, u32);

/// Parses `text`.
///
/// # Errors
/// The statement that is not understood.
pub(super) fn read(text: &str) -> Result<(Vec<Register>, Vec<Instruction>), String> {
    let mut scopes = Scopes::default();
    let mut instructions = Vec::new();
    for statement in strip_comments(text).split(';') {
        let whole = || statement.split_whitespace().collect::<Vec<_>>().join(" ");
        // Braces of scopes occur at the beginning of a statement.
        let mut rest = statement.trim();
        while let Some(brace) = rest.chars().next().filter(|c| matches!(c, '{' | '}')) {
            match brace {
                '{' => scopes.open.push(BTreeMap::new()),
                _ => scopes.open.pop().map(drop).ok_or_else(whole)?,
            }
            rest = rest[1..].trim_start();
        }
        if rest.is_empty() {
            continue;
        }
        let text = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = match rest.strip_prefix(".reg") {
            Some(names) => parse_declaration(names).map(|found| scopes.declare(found)),
            None => parse_instruction(rest, &text).map(|mut found| {
                scopes.name(&mut found);
                instructions.push(found);
            }),
        };
        found.ok_or(text)?;
    }
    Ok((scopes.registers, instructions))
}

/// Maps names to registers by scope; the innermost declaration wins.
#[derive(Default)]
struct Scopes {
    outermost: BTreeMap<String, String>,
    open: Vec<BTreeMap<String, String>>,
    registers: Vec<Register>,
}

impl Scopes {
    fn declare(&mut self, found: Vec<Register>) {
        for (name, bits) in found {
            let unique = format!("{name} {}", self.registers.len());
            let scope = self.open.last_mut().unwrap_or(&mut self.outermost);
            scope.insert(name, unique.clone());
            self.registers.push((unique, bits));
        }
    }

    fn name(&self, one: &mut Instruction) {
        if let Some((predicate, _)) = &mut one.when {
            self.resolve(predicate);
        }
        let mut open: Vec<&mut Operand> = one.operands.iter_mut().collect();
        while let Some(operand) = open.pop() {
            match operand {
                Operand::Named(name) | Operand::Not(name) => self.resolve(name),
                Operand::Number(_) | Operand::Float(..) => {}
                Operand::Memory(base, _) => open.push(base),
                Operand::Vector(parts) => open.extend(parts),
                Operand::WithPredicate(result, predicate) => {
                    self.resolve(predicate);
                    open.push(result);
                }
            }
        }
    }

    fn resolve(&self, name: &mut String) {
        let mut scopes = self.open.iter().rev().chain([&self.outermost]);
        if let Some(unique) = scopes.find_map(|scope| scope.get(name)) {
            name.clone_from(unique);
        }
    }
}

/// Returns the text without comments; an unterminated comment stays.
fn strip_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        let (before, remark) = rest.split_at(at);
        let end = match remark.starts_with("//") {
            true => Some(remark.find('\n').unwrap_or(remark.len())),
            false => remark[2..].find("*/").map(|end| end + 4),
        };
        let Some(end) = end else { break };
        out.push_str(before);
        out.push(' ');
        rest = &remark[end..];
    }
    out + rest
}

/// Parses `.u32 a, b<4>`: each register with its width.
fn parse_declaration(rest: &str) -> Option<Vec<Register>> {
    let (kind, names) = rest.trim().split_once(char::is_whitespace)?;
    let bits = match kind.strip_prefix('.')? {
        "pred" => 1,
        kind => super::Type::read(kind)?.bits,
    };
    let mut found = Vec::new();
    for name in names.split(',').map(str::trim) {
        match name.strip_suffix('>').and_then(|name| name.split_once('<')) {
            Some((name, count)) => {
                let count: u32 = count.parse().ok().filter(|count| *count <= 1000)?;
                found.extend((0..count).map(|at| (format!("{name}{at}"), bits)));
            }
            None => found.push((name.to_string(), bits)),
        }
    }
    Some(found)
}

fn parse_instruction(statement: &str, text: &str) -> Option<Instruction> {
    let (when, rest) = match statement.strip_prefix('@') {
        Some(rest) => {
            let (name, rest) = rest.split_once(char::is_whitespace)?;
            let when = match name.strip_prefix('!') {
                Some(name) => (name.to_string(), false),
                None => (name.to_string(), true),
            };
            (Some(when), rest.trim_start())
        }
        None => (None, statement),
    };
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let name: Vec<String> = rest[..end].split('.').map(String::from).collect();
    if name
        .iter()
        .any(|part| part.is_empty() || part.ends_with(':'))
    {
        return None;
    }
    let operands = split_at_commas(&rest[end..])?
        .into_iter()
        .map(parse_operand)
        .collect::<Option<_>>()?;
    Some(Instruction {
        when,
        name,
        operands,
        text: text.to_string(),
    })
}

/// Splits at commas outside brackets.
fn split_at_commas(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    (depth == 0).then_some(parts)
}

fn parse_operand(text: &str) -> Option<Operand> {
    if let Some(inside) = text.strip_prefix('[') {
        let inside = inside.strip_suffix(']')?.trim();
        let (base, offset) = match inside.rsplit_once('+') {
            Some((base, offset)) => (base.trim(), parse_int(offset.trim())? as i64),
            None => (inside, 0),
        };
        return Some(Operand::Memory(Box::new(parse_operand(base)?), offset));
    }
    if let Some(inside) = text.strip_prefix('{') {
        let parts = split_at_commas(inside.strip_suffix('}')?)?;
        let parts = parts
            .into_iter()
            .map(parse_operand)
            .collect::<Option<_>>()?;
        return Some(Operand::Vector(parts));
    }
    if let Some((result, predicate)) = text.split_once('|') {
        let result = Box::new(parse_operand(result.trim())?);
        return Some(Operand::WithPredicate(
            result,
            parse_name(predicate.trim())?.to_string(),
        ));
    }
    if let Some(predicate) = text.strip_prefix('!') {
        return Some(Operand::Not(parse_name(predicate)?.to_string()));
    }
    parse_int(text)
        .map(Operand::Number)
        .or_else(|| parse_float(text))
        .or_else(|| Some(Operand::Named(parse_name(text)?.to_string())))
}

fn parse_name(text: &str) -> Option<&str> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%');
    (text.starts_with(begins) && text.chars().all(letter)).then_some(text)
}

/// Parses a decimal or hexadecimal integer.
fn parse_int(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = digits.trim_end_matches(['u', 'U']);
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        // Octal literals are not supported.
        None if digits.len() > 1 && digits.starts_with('0') => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Parses the bits of a floating-point number: `0f3f800000`, or `0d` with twice as many digits.
fn parse_float(text: &str) -> Option<Operand> {
    let lower = text.to_ascii_lowercase();
    let (digits, bits) = match lower.strip_prefix("0f") {
        Some(digits) => (digits, 32),
        None => (lower.strip_prefix("0d")?, 64),
    };
    let value = u64::from_str_radix(digits, 16).ok()?;
    (digits.len() * 4 == bits as usize).then_some(Operand::Float(value, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_scopes_predicates_addresses() {
        let text = "{\n\t.reg .pred p; // one\n\t.reg .b32 r<2>;\n setp.ne.u32 p, $1, /* none */ 0;\n\
                    @!p ld.global.v2.u32 {r0, r1}, [$2+8];\n shfl.sync.up.b32 $0|p, r0, 1, 0, -1;\n}";
        let (registers, found) = read(text).expect("it is understood");
        assert_eq!(registers.len(), 3);
        assert_eq!(registers[2], ("r1 2".to_string(), 32));
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].when, Some(("p 0".to_string(), false)));
        let address = Operand::Memory(Box::new(Operand::Named("$2".into())), 8);
        assert_eq!(found[1].operands[1], address);
        assert_eq!(found[2].operands[4], Operand::Number(u64::MAX));
    }

    #[test]
    fn innermost_declaration_wins() {
        let text = "{ .reg .u32 t; mov.u32 t, 1; { .reg .u64 t; mov.u64 t, 2; } mov.u32 $0, t; }";
        let (registers, found) = read(text).expect("it is understood");
        assert_eq!(
            registers,
            [("t 0".to_string(), 32), ("t 1".to_string(), 64)]
        );
        let named = |name: &str| Operand::Named(name.into());
        assert_eq!(found[0].operands[0], named("t 0"));
        assert_eq!(found[1].operands[0], named("t 1"));
        assert_eq!(found[2].operands[1], named("t 0"));
    }

    #[test]
    fn labels_and_unbalanced_brackets_fail() {
        for text in [
            "again: add.s32 $0, $0, 1;",
            "ld.u32 $0, [$1;",
            "add.s32 $0, #;",
            "add.s32 $0, $1, 010;",
            "add.f32 $0, $1, 0f3f80;",
            "add.f32 $0, $1, -0f3f800000;",
            "add.s32 $0, $1, 1; } add.s32 $0, $0, 1;",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
