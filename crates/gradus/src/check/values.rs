//! Parses the values of `--arg NAME=VALUE`: numbers, arrays, and expressions of earlier numbers, translated
//! to C.

/// The value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A number.
    Number(String),
    /// An array: extents, the first varying fastest, and contents.
    Array { extents: Vec<String>, fill: Fill },
}

/// The contents of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// The contents passed by the call in the user's driver.
    FromDriver,
    Random,
    Zeros,
    Ones,
    /// The numbers 0, 1, 2 …
    Iota,
    /// Integers from 0 below a bound.
    RandomIntegers(String),
    /// The listed numbers.
    Listed(Vec<String>),
}

/// The default value of a number.
pub(super) const RANDOM: &str = "rand()";

/// C functions that an expression may call.
const FUNCTIONS: [&str; 12] = [
    "sqrt", "cbrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "fabs", "floor",
];

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Sign(char),
}

/// Splits an expression into tokens; `None` at an invalid character.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        let mut len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let number = first.is_ascii_digit() || (first == '.' && len > 1);
        match first {
            _ if number => {
                // The sign of an exponent belongs to the number.
                let hex = rest.starts_with("0x") || rest.starts_with("0X");
                if !hex && rest[..len].ends_with(['e', 'E']) && rest[len..].starts_with(['+', '-'])
                {
                    let digits = &rest[len + 1..];
                    len += 1 + digits
                        .find(|c: char| !c.is_ascii_digit())
                        .unwrap_or(digits.len());
                }
                found.push(Token::Number(&rest[..len]));
            }
            _ if is_part(first) && first != '.' => found.push(Token::Name(&rest[..len])),
            _ if "+-*/%()".contains(first) => {
                len = 1;
                found.push(Token::Sign(first));
            }
            _ => return None,
        }
        rest = rest[len..].trim_start();
    }
    Some(found).filter(|tokens| !tokens.is_empty())
}

fn is_expression(text: &str) -> bool {
    tokens(text).is_some()
}

/// Returns an expression in C. `known` returns the variables of earlier numbers. For a floating type, `1/2`
/// is a half.
///
/// # Errors
/// The name of an unknown number.
pub(super) fn to_c(
    text: &str,
    known: &dyn Fn(&str) -> Option<String>,
    floating: bool,
) -> Result<String, String> {
    let mut c = String::new();
    let floating = floating && !text.contains('%');
    for token in tokens(text).unwrap_or_default() {
        match token {
            Token::Number(digits) if floating && digits.bytes().all(|b| b.is_ascii_digit()) => {
                c.push_str(digits);
                c.push_str(".0");
            }
            Token::Number(digits) => c.push_str(digits),
            Token::Name(name) => match known(name) {
                Some(variable) => c.push_str(&variable),
                None if FUNCTIONS.contains(&name) => c.push_str(name),
                None => return Err(name.to_string()),
            },
            Token::Sign(sign) => c.push(sign),
        }
        c.push(' ');
    }
    Ok(c.trim_end().to_string())
}

/// Parses the text for an argument; a pointer may point to a single number.
pub(super) fn parse_value(text: &str, pointer: bool) -> Option<Value> {
    let text = text.trim();
    if !pointer && ["rand()", "rand"].contains(&text) {
        return Some(Value::Number(RANDOM.into()));
    }
    if let Some(list) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let values: Vec<String> = list.split(',').map(|value| value.trim().into()).collect();
        let good = pointer && values.iter().all(|value| is_expression(value));
        return good.then(|| Value::Array {
            extents: vec![values.len().to_string()],
            fill: Fill::Listed(values),
        });
    }
    parse_fill(text)
        .filter(|_| pointer)
        .or_else(|| number(text).map(Value::Number))
}

/// Parses `rand(n)` and similar fills.
fn parse_fill(text: &str) -> Option<Value> {
    let (name, rest) = text.split_once('(')?;
    let inside = rest.strip_suffix(')')?;
    let mut extents: Vec<String> = inside.split(',').map(|e| e.trim().to_string()).collect();
    let fill = match name.trim() {
        "given" => Fill::FromDriver,
        "rand" => Fill::Random,
        "zeros" => Fill::Zeros,
        "ones" => Fill::Ones,
        "iota" => Fill::Iota,
        "randint" if extents.len() > 1 => Fill::RandomIntegers(extents.pop()?),
        _ => return None,
    };
    let bound = match &fill {
        Fill::RandomIntegers(bound) => Some(bound),
        _ => None,
    };
    let good = extents.iter().chain(bound).all(|e| is_expression(e));
    good.then_some(Value::Array { extents, fill })
}

/// Parses an expression that is not an array fill.
fn number(text: &str) -> Option<String> {
    let fills = ["given", "rand", "zeros", "ones", "iota", "randint"];
    let named = |token: &Token<'_>| matches!(token, Token::Name(name) if fills.contains(name));
    let plain = tokens(text).is_some_and(|tokens| !tokens.iter().any(named));
    plain.then(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents_of(text: &str) -> Option<(Vec<String>, Fill)> {
        match parse_value(text, true) {
            Some(Value::Array { extents, fill }) => Some((extents, fill)),
            _ => None,
        }
    }

    #[test]
    fn values_are_read_or_refused() {
        assert_eq!(parse_value("3.5", false), Some(Value::Number("3.5".into())));
        assert!(matches!(
            parse_value("2 * n + 1", false),
            Some(Value::Number(_))
        ));
        assert!(matches!(parse_value("6", true), Some(Value::Number(n)) if n == "6"));
        let of = |list: &[&str]| list.iter().map(|t| t.to_string()).collect::<Vec<_>>();
        assert_eq!(
            extents_of("rand(n * m)"),
            Some((of(&["n * m"]), Fill::Random))
        );
        assert_eq!(
            extents_of("zeros(3,n)"),
            Some((of(&["3", "n"]), Fill::Zeros))
        );
        let whole = Fill::RandomIntegers("m - 1".into());
        assert_eq!(extents_of("randint(n, m - 1)"), Some((of(&["n"]), whole)));
        let listed = Fill::Listed(of(&["0.5", "-1e-3", "n"]));
        assert_eq!(extents_of("[0.5, -1e-3,n]"), Some((of(&["3"]), listed)));
        for text in ["", "x; abort()", "\"a\"", "[1]", "rand(3)", "a, b", "n = 2"] {
            assert!(parse_value(text, false).is_none(), "{text}");
        }
        for text in [
            "rand",
            "rand()",
            "rand(n",
            "randint(n)",
            "rand(n); f(",
            "[]",
            "[1, 2",
            "[1, abort(); 2]",
            "rand(2) + 1",
        ] {
            assert!(parse_value(text, true).is_none(), "{text}");
        }
    }

    #[test]
    fn expressions_name_numbers_given_before() {
        let known = |name: &str| {
            ["n", "b.c"]
                .contains(&name)
                .then(|| format!("v_{}", name.len()))
        };
        let c = |text: &str, floating| to_c(text, &known, floating);
        assert_eq!(c("2*n+1", false), Ok("2 * v_1 + 1".into()));
        assert_eq!(c("1/2", true), Ok("1.0 / 2.0".into()));
        assert_eq!(c("b.c - 1e-3", true), Ok("v_3 - 1e-3".into()));
        assert_eq!(c("sqrt(2) * .5", true), Ok("sqrt ( 2.0 ) * .5".into()));
        assert_eq!(c("0x10 + 1", false), Ok("0x10 + 1".into()));
        assert_eq!(c("m + 1", false), Err("m".into()));
        assert_eq!(c("abort()", false), Err("abort".into()));
    }
}
