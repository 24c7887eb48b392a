//! The lexer of the text form; `;` begins a comment up to the end of the line.

use super::TextError;

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A bare word: a mnemonic, a type, a flag …
    Word(String),
    /// `%name`. The flag is true for a quoted name; a quoted name is never a number.
    Local(String, bool),
    /// `@name`.
    Symbol(String),
    /// `$name`.
    TypeName(String),
    /// `#` followed by a number.
    Hash(u64),
    /// `!word`.
    Bang(String),
    /// A decimal integer, possibly negative.
    Int(String),
    /// A decimal number with a point or an exponent.
    Float(String),
    /// The digits of `0x…`.
    Hex(String),
    /// A string.
    Text(String),
    /// Punctuation; the only multi-character tokens are `->` and `...`.
    Punct(&'static str),
    /// The end of the text.
    End,
}

/// A token and the source position.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub line: u32,
    pub column: u32,
    /// True for the first token of a line and for [`TokenKind::End`].
    pub first: bool,
}

const PUNCTUATION: &[&str] = &[
    "->", "...", "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", "=", "|", "+",
];

/// Returns the tokens of `text`; the last token is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, TextError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        line_start: 0,
    };
    let mut list = Vec::with_capacity(text.len() / 4);
    let mut last_line = 0;
    loop {
        lexer.skip_whitespace();
        let (line, column) = (lexer.line, lexer.column());
        let kind = lexer.token()?;
        let end = kind == TokenKind::End;
        list.push(Token {
            kind,
            line,
            column,
            first: line != last_line || end,
        });
        last_line = line;
        if end {
            return Ok(list);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$')
}

impl<'a> Lexer<'a> {
    fn column(&self) -> u32 {
        (self.at - self.line_start) as u32 + 1
    }
    fn error<T>(&self, message: impl Into<String>) -> Result<T, TextError> {
        Err(TextError {
            line: self.line,
            column: self.column(),
            message: message.into(),
        })
    }
    fn peek(&self, ahead: usize) -> u8 {
        *self.text.as_bytes().get(self.at + ahead).unwrap_or(&0)
    }
    fn skip_whitespace(&mut self) {
        while self.at < self.text.len() {
            match self.peek(0) {
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b';' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }
    fn run(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.at < self.text.len() && accept(self.peek(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn token(&mut self) -> Result<TokenKind, TextError> {
        if self.at >= self.text.len() {
            return Ok(TokenKind::End);
        }
        let first = self.peek(0);
        match first {
            b'%' => self
                .name()
                .map(|(name, quoted)| TokenKind::Local(name, quoted)),
            b'@' => self.name().map(|(name, _)| TokenKind::Symbol(name)),
            b'$' => self.name().map(|(name, _)| TokenKind::TypeName(name)),
            b'!' => self.name().map(|(name, _)| TokenKind::Bang(name)),
            b'#' => {
                self.at += 1;
                let digits = self.run(|b| b.is_ascii_digit());
                match digits.parse() {
                    Ok(n) => Ok(TokenKind::Hash(n)),
                    Err(_) => self.error("expected a number after `#`"),
                }
            }
            b'"' => self.string().map(TokenKind::Text),
            b'0'..=b'9' => self.number(),
            b'-' if self.peek(1).is_ascii_digit() => self.number(),
            b if b.is_ascii_alphabetic() || b == b'_' => {
                Ok(TokenKind::Word(self.run(is_word).to_string()))
            }
            _ => {
                let rest = &self.text[self.at..];
                match PUNCTUATION.iter().find(|p| rest.starts_with(**p)) {
                    Some(punct) => {
                        self.at += punct.len();
                        Ok(TokenKind::Punct(punct))
                    }
                    None => {
                        let sign = rest.chars().next().unwrap_or(' ');
                        self.error(format!("unexpected character `{sign}`"))
                    }
                }
            }
        }
    }

    /// Reads the name after a sigil; the flag is true for a quoted name.
    fn name(&mut self) -> Result<(String, bool), TextError> {
        self.at += 1;
        if self.peek(0) == b'"' {
            return Ok((self.string()?, true));
        }
        let name = self.run(is_word);
        match name.is_empty() {
            true => self.error("expected a name"),
            false => Ok((name.to_string(), false)),
        }
    }

    fn number(&mut self) -> Result<TokenKind, TextError> {
        let start = self.at;
        if self.peek(0) == b'0' && self.peek(1) == b'x' {
            self.at += 2;
            let digits = self.run(|b| b.is_ascii_hexdigit());
            return Ok(TokenKind::Hex(digits.to_string()));
        }
        self.at += usize::from(self.peek(0) == b'-');
        self.run(|b| b.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.run(|b| b.is_ascii_digit());
        }
        if matches!(self.peek(0), b'e' | b'E') {
            float = true;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(0), b'-' | b'+'));
            if self.run(|b| b.is_ascii_digit()).is_empty() {
                return self.error("expected digits in the exponent");
            }
        }
        let text = self.text[start..self.at].to_string();
        Ok(match float {
            true => TokenKind::Float(text),
            false => TokenKind::Int(text),
        })
    }

    /// Reads a string. Escapes: `\\`, `\"` and `\xx` (one byte, two hexadecimal digits).
    fn string(&mut self) -> Result<String, TextError> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek(0) {
                _ if self.at >= self.text.len() => return self.error("unterminated string"),
                b'\n' => return self.error("unterminated string: a string cannot span lines"),
                b'"' => {
                    self.at += 1;
                    break;
                }
                b'\\' => {
                    bytes.push(self.escape()?);
                }
                byte => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) => self.error("the string is not valid UTF-8"),
        }
    }

    fn escape(&mut self) -> Result<u8, TextError> {
        let next = self.peek(1);
        if matches!(next, b'\\' | b'"') {
            self.at += 2;
            return Ok(next);
        }
        let digits = self.text.get(self.at + 1..self.at + 3);
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(byte) => {
                self.at += 3;
                Ok(byte)
            }
            None => self.error("invalid escape: expected `\\\\`, `\\\"` or two hexadecimal digits"),
        }
    }
}

/// Returns whether a name needs no quotes after the sigil.
pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_word)
}

/// Returns `text` as a string token.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\{:02x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
