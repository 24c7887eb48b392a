//! The parser of units. Pass 1 declares all names with types; pass 2 parses properties, initial bytes and
//! bodies. Symbols may therefore be used before the declaring line.

use super::TextError;
use super::lex::{Token, TokenKind, tokens};
use super::parse_body::BodyParser;
use crate::op_table::prototypes;
use crate::{
    AttrSet, AttrsId, Diagnostic, Entity, FloatKind, FuncId, Function, Global, GlobalId,
    Initializer, Layout, Linkage, LocId, OpKind, Relocation, ScopeId, SourceSpan, Symbol,
    TbaaTypeId, Type, TypeId, Unit,
};
use std::collections::HashMap;

/// Parses a unit; `file` is the name of the text in diagnostics.
///
/// # Errors
/// [`crate::Code::BadText`] with line and column of the syntax error.
pub fn parse(text: &str, file: &str) -> Result<Unit, Diagnostic> {
    parse_text(text).map_err(|e| e.diagnostic(file))
}

fn parse_text(text: &str) -> Result<Unit, TextError> {
    let mut parser = Parser::new(tokens(text)?);
    parser.number_facts();
    let mut functions = Vec::new();
    let mut globals = Vec::new();
    while *parser.peek() != TokenKind::End {
        parser.item(&mut functions, &mut globals)?;
    }
    parser.check_facts()?;
    let mut bodies = Vec::new();
    for (id, tail) in globals {
        parser.at = tail;
        parser.global_tail(id)?;
    }
    for header in functions {
        parser.at = header.tail;
        if parser.function_tail(&header)? {
            bodies.push((header, parser.at));
        }
    }
    for (header, start) in bodies {
        parser.at = start;
        let body = BodyParser::new(&mut parser).run(&header.params)?;
        parser.unit.functions[header.id].body = Some(Box::new(body));
    }
    Ok(parser.unit)
}

/// A function parameter: name token and type.
pub(super) struct Param {
    pub name: Option<Token>,
    pub ty: TypeId,
}

/// A function header, found in pass 1.
struct Header {
    id: FuncId,
    params: Vec<Param>,
    has_body: bool,
    /// The token index of the properties.
    tail: usize,
}

/// The parser's state.
pub(super) struct Parser {
    tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) unit: Unit,
    pub(super) mnemonics: HashMap<&'static str, OpKind>,
    pub(super) type_names: HashMap<(String, u64), TypeId>,
    pub(super) locations: HashMap<u64, LocId>,
    pub(super) scopes: HashMap<u64, ScopeId>,
    pub(super) tbaa_types: HashMap<u64, TbaaTypeId>,
    pub(super) attrs: HashMap<u64, AttrsId>,
}

impl Parser {
    fn new(tokens: Vec<Token>) -> Self {
        let mut unit = Unit::default();
        // Result types may require `i1` (see `result_types`).
        unit.types.int(1);
        Parser {
            tokens,
            at: 0,
            unit,
            mnemonics: prototypes().into_iter().collect(),
            type_names: HashMap::new(),
            locations: HashMap::new(),
            scopes: HashMap::new(),
            tbaa_types: HashMap::new(),
            attrs: HashMap::new(),
        }
    }

    // ---- tokens ----------------------------------------------------------------------------

    pub(super) fn token(&self) -> &Token {
        &self.tokens[self.at]
    }
    pub(super) fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }
    pub(super) fn peek_after(&self, ahead: usize) -> &TokenKind {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)].kind
    }
    pub(super) fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }
    pub(super) fn error_at<T>(
        &self,
        token: &Token,
        message: impl Into<String>,
    ) -> Result<T, TextError> {
        Err(TextError {
            line: token.line,
            column: token.column,
            message: message.into(),
        })
    }
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T, TextError> {
        self.error_at(self.token(), message)
    }
    pub(super) fn is_punct(&self, sign: &str) -> bool {
        matches!(self.peek(), TokenKind::Punct(p) if *p == sign)
    }
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_punct(sign);
        self.at += usize::from(found);
        found
    }
    pub(super) fn expect(&mut self, sign: &str) -> Result<(), TextError> {
        match self.eat(sign) {
            true => Ok(()),
            false => self.error(format!("expected `{sign}`")),
        }
    }
    pub(super) fn word(&self) -> Option<&str> {
        match self.peek() {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        self.at += usize::from(found);
        found
    }
    pub(super) fn text(&mut self) -> Result<String, TextError> {
        match self.advance().kind {
            TokenKind::Text(text) => Ok(text),
            _ => {
                self.at -= 1;
                self.error("expected a string in quotes")
            }
        }
    }
    /// Parses an integer of type `T`.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Result<T, TextError> {
        let parsed = match self.peek() {
            TokenKind::Int(text) => text.parse().ok(),
            _ => None,
        };
        match parsed {
            Some(n) => {
                self.at += 1;
                Ok(n)
            }
            None => self.error("expected an integer in range"),
        }
    }
    pub(super) fn symbol_name(&mut self) -> Result<String, TextError> {
        match self.peek() {
            TokenKind::Symbol(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.error("expected a name with `@`"),
        }
    }
    pub(super) fn symbol(&mut self) -> Result<Symbol, TextError> {
        let token = self.token().clone();
        let name = self.symbol_name()?;
        match self.unit.symbol(&name) {
            Some(symbol) => Ok(symbol),
            None => self.error_at(&token, format!("undefined symbol `@{name}`")),
        }
    }
    /// Parses a comma-separated list between brackets.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, TextError>,
    ) -> Result<Vec<T>, TextError> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.is_punct(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        self.expect(close)?;
        Ok(items)
    }

    // ---- items -----------------------------------------------------------------------------

    fn item(
        &mut self,
        functions: &mut Vec<Header>,
        globals: &mut Vec<(GlobalId, usize)>,
    ) -> Result<(), TextError> {
        let word = self.word().unwrap_or_default().to_string();
        let known = ["layout", "type", "global", "func", "declare"];
        if !known.contains(&word.as_str()) {
            return self.numbered_line(&word);
        }
        self.at += 1;
        match word.as_str() {
            "layout" => {
                self.unit.layout = Layout::parse(&self.text()?);
                Ok(())
            }
            "type" => self.named_type(),
            "global" => {
                globals.push(self.global_head()?);
                Ok(())
            }
            _ => {
                functions.push(self.function_head(word == "func")?);
                Ok(())
            }
        }
    }

    /// Skips to the next line that begins outside all brackets.
    fn skip_item(&mut self) -> Result<(), TextError> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                TokenKind::End if depth == 0 => return Ok(()),
                TokenKind::End => return self.error("expected a closing bracket"),
                _ if depth == 0 && self.token().first => return Ok(()),
                TokenKind::Punct("{" | "(" | "[") => depth += 1,
                TokenKind::Punct("}" | ")" | "]") => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return self.error("unmatched closing bracket"),
                },
                _ => {}
            }
            self.at += 1;
        }
    }

    fn new_symbol(&mut self) -> Result<String, TextError> {
        let token = self.token().clone();
        let name = self.symbol_name()?;
        match self.unit.symbol(&name) {
            None => Ok(name),
            Some(_) => self.error_at(&token, format!("`@{name}` is defined twice")),
        }
    }

    fn function_head(&mut self, has_body: bool) -> Result<Header, TextError> {
        let name = self.new_symbol()?;
        let mut variadic = false;
        let params = self.list("(", ")", |p| {
            variadic = p.eat("...");
            if variadic {
                return Ok(None);
            }
            let name = match p.peek() {
                TokenKind::Local(..) => {
                    let token = p.advance();
                    p.expect(":")?;
                    Some(token)
                }
                _ => None,
            };
            let ty = p.ty()?;
            Ok(Some(Param { name, ty }))
        })?;
        let params: Vec<Param> = params.into_iter().flatten().collect();
        let result = match self.eat("->") {
            true => self.ty()?,
            false => self.unit.types.void(),
        };
        let ty = self.unit.types.intern(Type::Func {
            result,
            params: params.iter().map(|p| p.ty).collect(),
            variadic,
        });
        let tail = self.at;
        self.skip_item()?;
        let attrs = self.unit.intern_attrs(AttrSet::default());
        let id = self.unit.add_function(Function {
            name,
            ty,
            attrs,
            convention: 0,
            linkage: Linkage::External,
            defined: has_body,
            body: None,
            derived_from: None,
            param_names: params
                .iter()
                .map(|p| source_name(p.name.as_ref()))
                .collect(),
            span: None,
            source_name: None,
        });
        Ok(Header {
            id,
            params,
            has_body,
            tail,
        })
    }

    /// Parses a function's properties; returns whether a body follows.
    fn function_tail(&mut self, header: &Header) -> Result<bool, TextError> {
        let id = header.id;
        while !self.token().first && !self.is_punct("{") {
            if let TokenKind::Hash(number) = *self.peek() {
                self.unit.functions[id].attrs = self.attrs_id(number)?;
                self.at += 1;
                continue;
            }
            let Some(word) = self.word().map(str::to_string) else {
                break;
            };
            if let Some(linkage) = linkage(&word) {
                self.at += 1;
                self.unit.functions[id].linkage = linkage;
                continue;
            }
            let token = self.advance();
            match word.as_str() {
                "type" => self.unit.functions[id].ty = self.ty()?,
                "hosted" => self.unit.functions[id].defined = true,
                "new" => self.unit.functions[id].defined = false,
                "cc" => self.unit.functions[id].convention = self.number()?,
                "from" => match self.symbol()? {
                    Symbol::Func(from) => self.unit.functions[id].derived_from = Some(from),
                    Symbol::Global(_) => {
                        return self.error_at(&token, "`from` needs the name of a function");
                    }
                },
                "source" => self.unit.functions[id].source_name = Some(self.text()?),
                "at" => self.unit.functions[id].span = Some(self.span()?),
                _ => {
                    return self.error_at(&token, format!("unknown function property `{word}`"));
                }
            }
        }
        if !header.has_body {
            return match self.token().first || *self.peek() == TokenKind::End {
                true => Ok(false),
                false => self.error("expected the end of the declaration"),
            };
        }
        self.expect("{")?;
        Ok(true)
    }

    pub(super) fn span(&mut self) -> Result<SourceSpan, TextError> {
        let file = self.text()?;
        self.expect(":")?;
        let line = self.number()?;
        self.expect(":")?;
        let column = self.number()?;
        Ok(SourceSpan {
            file,
            line,
            column,
            called_at: None,
        })
    }

    // ---- globals ---------------------------------------------------------------------------

    fn global_head(&mut self) -> Result<(GlobalId, usize), TextError> {
        let name = self.new_symbol()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let tail = self.at;
        self.skip_item()?;
        let align_bytes = self.unit.layout.align_bytes(&self.unit, ty) as u32;
        let id = self.unit.add_global(Global {
            name,
            ty,
            constant: false,
            thread_local: false,
            defined: true,
            linkage: Linkage::External,
            align_bytes,
            init: None,
            unparsed_symbols: Vec::new(),
            room_bytes: 0,
            derived_from: None,
        });
        Ok((id, tail))
    }

    fn global_tail(&mut self, id: GlobalId) -> Result<(), TextError> {
        while !self.token().first {
            if self.eat("=") {
                let init = self.initializer(self.unit.globals[id].ty)?;
                self.unit.globals[id].init = Some(init);
                continue;
            }
            let token = self.advance();
            let TokenKind::Word(word) = &token.kind else {
                return self.error_at(&token, "expected a property of a global or `=`");
            };
            if let Some(linkage) = linkage(word) {
                self.unit.globals[id].linkage = linkage;
                continue;
            }
            match word.as_str() {
                "extern" => self.unit.globals[id].defined = false,
                "const" => self.unit.globals[id].constant = true,
                "thread_local" => self.unit.globals[id].thread_local = true,
                "align" => self.unit.globals[id].align_bytes = self.number()?,
                "room" => self.unit.globals[id].room_bytes = self.number()?,
                "unread" => {
                    self.expect("(")?;
                    while !self.eat(")") {
                        let symbol = self.symbol()?;
                        self.unit.globals[id].unparsed_symbols.push(symbol);
                        self.eat(",");
                    }
                }
                "from" => match self.symbol()? {
                    Symbol::Global(from) => self.unit.globals[id].derived_from = Some(from),
                    Symbol::Func(_) => {
                        return self.error_at(&token, "`from` needs the name of a global");
                    }
                },
                _ => return self.error_at(&token, format!("unknown global property `{word}`")),
            }
        }
        Ok(())
    }

    fn initializer(&mut self, ty: TypeId) -> Result<Initializer, TextError> {
        let bytes = if self.eat_word("zero") {
            let n: u32 = self.number()?;
            vec![0; n as usize]
        } else if self.eat_word("hex") {
            let digits = self.text()?;
            match hex_bytes(&digits) {
                Some(bytes) => bytes,
                None => return self.error("expected pairs of hexadecimal digits"),
            }
        } else {
            self.number_bytes(ty)?
        };
        let mut relocations = Vec::new();
        if self.eat_word("relocations") {
            relocations = self.list("(", ")", |p| {
                let offset_bytes = p.number()?;
                p.expect(":")?;
                let target = p.symbol()?;
                let addend = p.offset()?;
                Ok(Relocation {
                    offset_bytes,
                    target,
                    addend,
                })
            })?;
        }
        Ok(Initializer { bytes, relocations })
    }

    fn number_bytes(&mut self, ty: TypeId) -> Result<Vec<u8>, TextError> {
        let start = self.token().clone();
        let Some((elem, count)) = number_array(&self.unit, ty) else {
            return self
                .error("expected `zero N` or `hex \"…\"` as the initial bytes of this type");
        };
        let size = self.unit.layout.store_bytes(&self.unit, elem) as usize;
        let words = self.list("[", "]", |p| p.number_bits(elem))?;
        if words.len() as u64 != count || !self.unit.layout.little_endian {
            return self.error_at(&start, format!("expected {count} numbers for this type"));
        }
        let bytes = words.iter().flat_map(|w| w.to_le_bytes()[..size].to_vec());
        Ok(bytes.collect())
    }
}

/// Returns element type and length of a scalar or array whose initial bytes are written as numbers.
pub(super) fn number_array(unit: &Unit, ty: TypeId) -> Option<(TypeId, u64)> {
    let (elem, count) = match *unit.types.get(ty) {
        Type::Array { elem, len } => (elem, len),
        _ => (ty, 1),
    };
    match unit.types.get(elem) {
        Type::Float(FloatKind::F32 | FloatKind::F64) | Type::Int(8 | 16 | 32 | 64) => {
            Some((elem, count))
        }
        _ => None,
    }
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).ok())
        .collect()
}

/// Returns a parameter's source name; numbers are no source names.
fn source_name(token: Option<&Token>) -> Option<String> {
    match &token?.kind {
        TokenKind::Local(name, quoted) if *quoted || !super::names::is_number(name) => {
            Some(name.clone())
        }
        _ => None,
    }
}

fn linkage(word: &str) -> Option<Linkage> {
    match word {
        "internal" => Some(Linkage::Internal),
        "linkonce_odr" => Some(Linkage::LinkOnceOdr),
        "interposable" => Some(Linkage::Interposable),
        _ => None,
    }
}

/// Assigns ids to the numbers of one kind of fact, in textual order.
pub(super) fn number_items<K: Entity>(
    tokens: impl Iterator<Item = u64>,
    map: &mut HashMap<u64, K>,
) {
    for number in tokens {
        let id = K::from_index(map.len());
        map.entry(number).or_insert(id);
    }
}

impl Parser {
    /// Returns the numbers after `word` at line beginnings outside all braces.
    pub(super) fn numbered(&self, word: &str) -> Vec<u64> {
        let mut depth = 0i64;
        let mut numbers = Vec::new();
        for pair in self.tokens.windows(2) {
            match (&pair[0].kind, &pair[1].kind) {
                (TokenKind::Punct("{"), _) => depth += 1,
                (TokenKind::Punct("}"), _) => depth -= 1,
                (TokenKind::Word(w), TokenKind::Int(n)) if w == word && depth == 0 => {
                    numbers.extend(pair[0].first.then(|| n.parse::<u64>().ok()).flatten());
                }
                _ => {}
            }
        }
        numbers
    }
}
