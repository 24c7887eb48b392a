//! Format strings of `printf`.

use crate::bytecode::code::CallSite;
use crate::externals::defined_arg;
use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::Value;

/// One conversion specification.
#[derive(Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// The number of `l`; `z`, `j`, `t` and `L` count as two.
    long: u32,
    /// The number of `h`.
    short: u32,
    letter: u8,
}

impl Machine<'_> {
    /// Formats the arguments from index `next` on.
    pub(crate) fn formatted(
        &self,
        format: &[u8],
        site: &CallSite,
        args: &[Value],
        mut next: usize,
    ) -> Eval<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < format.len() {
            if format[at] != b'%' {
                out.push(format[at]);
                at += 1;
                continue;
            }
            at += 1;
            let conversion = parse_conversion(format, &mut at, args, &mut next)?;
            if conversion.letter == b'%' {
                out.push(b'%');
                continue;
            }
            let wide = site.arg_shapes.get(next).and_then(|s| s.as_ref()?.num());
            if wide.is_some_and(|num| num.bits() > 64) {
                return fault(
                    TrapKind::Unsupported,
                    "`printf` with a number of more than 64 bits",
                );
            }
            let bits = defined_arg(args, next)?;
            next += 1;
            let text = self.format_value(&conversion, bits)?;
            pad(&mut out, &conversion, text);
        }
        Ok(out)
    }

    fn format_value(&self, c: &Conversion, bits: u64) -> Eval<Vec<u8>> {
        let cut = match (c.long, c.short) {
            (1.., _) => 64,
            (_, 0) => 32,
            (_, 1) => 16,
            _ => 8,
        };
        let unsigned = bits << (64 - cut) >> (64 - cut);
        let text = match c.letter {
            b'd' | b'i' => {
                let n = ((bits << (64 - cut)) as i64) >> (64 - cut);
                signed_text(c, n < 0, digits(c, n.unsigned_abs().to_string()))
            }
            b'u' => digits(c, unsigned.to_string()),
            b'x' => prefixed(c, "0x", digits(c, format!("{unsigned:x}"))),
            b'X' => prefixed(c, "0X", digits(c, format!("{unsigned:X}"))),
            b'o' => prefixed(c, "0", digits(c, format!("{unsigned:o}"))),
            b'c' => return Ok(vec![bits as u8]),
            b'p' => format!("{bits:#x}"),
            b's' => {
                let mut text = Vec::new();
                while c.precision.is_none_or(|most| text.len() < most) {
                    let byte = self.memory.bytes(bits.wrapping_add(text.len() as u64), 1)?[0];
                    if byte == 0 {
                        break;
                    }
                    text.push(byte);
                }
                return Ok(text);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => float_text(c, f64::from_bits(bits)),
            _ => {
                return fault(
                    TrapKind::Unsupported,
                    "an unsupported conversion in `printf`",
                );
            }
        };
        Ok(text.into_bytes())
    }
}

fn parse_conversion(
    format: &[u8],
    at: &mut usize,
    args: &[Value],
    next: &mut usize,
) -> Eval<Conversion> {
    let mut c = Conversion::default();
    let byte = |at: usize| format.get(at).copied().unwrap_or(0);
    loop {
        match byte(*at) {
            b'-' => c.left = true,
            b'+' => c.plus = true,
            b' ' => c.space = true,
            b'0' => c.zero = true,
            b'#' => c.alternate = true,
            _ => break,
        }
        *at += 1;
    }
    let mut count = |at: &mut usize| -> Eval<usize> {
        if byte(*at) == b'*' {
            *at += 1;
            *next += 1;
            return Ok(defined_arg(args, *next - 1)? as u32 as usize);
        }
        let mut n = 0usize;
        while byte(*at).is_ascii_digit() {
            n = n.saturating_mul(10) + usize::from(byte(*at) - b'0');
            *at += 1;
        }
        Ok(n)
    };
    c.width = count(at)?.min(1 << 16);
    if byte(*at) == b'.' {
        *at += 1;
        c.precision = Some(count(at)?.min(1 << 16));
    }
    loop {
        match byte(*at) {
            b'l' => c.long += 1,
            b'z' | b'j' | b't' | b'L' => c.long += 2,
            b'h' => c.short += 1,
            letter => {
                c.letter = letter;
                *at += 1;
                return Ok(c);
            }
        }
        *at += 1;
    }
}

fn pad(out: &mut Vec<u8>, c: &Conversion, text: Vec<u8>) {
    let missing = c.width.saturating_sub(text.len());
    let number = !matches!(c.letter, b's' | b'c' | b'p');
    // `inf` and `nan` get spaces.
    let finite = !text.iter().any(|b| b.eq_ignore_ascii_case(&b'n'));
    if c.left {
        out.extend(text);
        out.extend(std::iter::repeat_n(b' ', missing));
    } else if c.zero && number && finite && !(c.precision.is_some() && is_int(c.letter)) {
        let sign = usize::from(matches!(text.first(), Some(b'-' | b'+' | b' ')));
        let is_prefixed = matches!(text.get(sign..sign + 2), Some(b"0x" | b"0X"));
        let head = sign + if is_prefixed { 2 } else { 0 };
        out.extend(&text[..head]);
        out.extend(std::iter::repeat_n(b'0', missing));
        out.extend(&text[head..]);
    } else {
        out.extend(std::iter::repeat_n(b' ', missing));
        out.extend(text);
    }
}

fn is_int(letter: u8) -> bool {
    matches!(letter, b'd' | b'i' | b'u' | b'x' | b'X' | b'o')
}

/// Pads with leading zeros to the precision.
fn digits(c: &Conversion, text: String) -> String {
    let least = c.precision.unwrap_or(1);
    format!("{}{text}", "0".repeat(least.saturating_sub(text.len())))
}

fn prefixed(c: &Conversion, prefix: &str, text: String) -> String {
    match c.alternate && text != "0" {
        true => format!("{prefix}{text}"),
        false => text,
    }
}

fn signed_text(c: &Conversion, negative: bool, magnitude: String) -> String {
    let sign = match negative {
        true => "-",
        false if c.plus => "+",
        false if c.space => " ",
        false => "",
    };
    format!("{sign}{magnitude}")
}

fn float_text(c: &Conversion, x: f64) -> String {
    let upper = c.letter.is_ascii_uppercase();
    let magnitude = x.abs();
    let text = if x.is_nan() {
        "nan".to_string()
    } else if x.is_infinite() {
        "inf".to_string()
    } else {
        let precision = c.precision.unwrap_or(6);
        match c.letter.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponent_text(magnitude, precision),
            _ => general_text(c, magnitude, precision.max(1)),
        }
    };
    let text = if upper { text.to_uppercase() } else { text };
    signed_text(c, x.is_sign_negative(), text)
}

/// Formats `1.5e+00`: C's exponent has a sign and at least two digits.
fn exponent_text(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let n: i32 = exponent.parse().unwrap_or(0);
    let sign = if n < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", n.abs())
}

/// Formats `%g`: the fixed or the exponent form, without trailing zeros.
fn general_text(c: &Conversion, x: f64, precision: usize) -> String {
    let scientific = exponent_text(x, precision - 1);
    let exponent: i32 = match scientific.split_once('e') {
        Some((_, exponent)) => exponent.parse().unwrap_or(0),
        None => 0,
    };
    let trim = |text: &str| match c.alternate || !text.contains('.') {
        true => text.to_string(),
        false => text.trim_end_matches('0').trim_end_matches('.').to_string(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let (mantissa, tail) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{tail}", trim(mantissa));
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{x:.decimals$}"))
}
