//! The parser of function bodies. Open regions are on an explicit stack; nesting costs no recursion.
//!
//! A value may be used before the defining line. Such text parses, and the verifier reports the rule
//! violation.

use super::TextError;
use super::lex::{Token, TokenKind};
use super::parse::{Param, Parser};
use super::print_kind::{access_mut, accessed};
use crate::op_table::{Count, INFERRED_DIMS};
use crate::result_types::implied;
use crate::{
    Body, CallInfo, ConstKind, Flags, Op, OpKind, Region, TailKind, Type, TypeId, Unit, Value,
};
use std::collections::HashMap;

/// The state of the parser of one body.
pub(super) struct BodyParser<'a> {
    parser: &'a mut Parser,
    body: Body,
    values: HashMap<String, Value>,
    /// Operands with later definitions.
    unresolved: Vec<(Op, usize, Token)>,
    stack: Vec<OpenOp>,
    region: Region,
}

/// An op with regions still to parse.
struct OpenOp {
    op: Op,
    outside: Region,
    cases: Vec<u128>,
}

/// An operand.
enum Arg {
    Value(Value),
    /// The name token of a value that is not yet defined.
    Forward(Token),
}

/// The part of an op before the result types.
struct OpHead {
    kind: OpKind,
    flags: Flags,
    args: Vec<Arg>,
    /// Parameters of the first region that are written beside operands: name token and operand index.
    params: Vec<(Token, usize)>,
}

impl<'a> BodyParser<'a> {
    pub fn new(parser: &'a mut Parser) -> Self {
        let body = Body::new(&[]);
        let region = body.root();
        BodyParser {
            parser,
            body,
            values: HashMap::new(),
            unresolved: Vec::new(),
            stack: Vec::new(),
            region,
        }
    }

    /// Parses ops up to and including the closing brace of the body.
    pub fn run(mut self, params: &[Param]) -> Result<Body, TextError> {
        for param in params {
            let value = self.body.add_param(self.region, param.ty);
            if let Some(token) = &param.name {
                self.define(value, token)?;
            }
        }
        loop {
            if !self.parser.eat("}") {
                self.op()?;
                continue;
            }
            let Some(open) = self.stack.pop() else {
                break;
            };
            self.next_region(open)?;
        }
        for (op, index, token) in std::mem::take(&mut self.unresolved) {
            match self.values.get(&key(&token)) {
                Some(&value) => self.body.set_operand(op, index, value),
                None => return self.parser.error_at(&token, "undefined value"),
            }
        }
        Ok(self.body)
    }

    fn define(&mut self, value: Value, token: &Token) -> Result<(), TextError> {
        let TokenKind::Local(name, quoted) = &token.kind else {
            return self.parser.error_at(token, "expected a name with `%`");
        };
        if self.values.insert(key(token), value).is_some() {
            return self
                .parser
                .error_at(token, format!("`%{name}` is defined twice"));
        }
        if *quoted || !super::names::is_number(name) {
            self.body.set_name(value, name);
        }
        Ok(())
    }

    // ---- regions ---------------------------------------------------------------------------

    /// Enters the op's next region, if any; otherwise continues after the op.
    fn next_region(&mut self, mut open: OpenOp) -> Result<(), TextError> {
        let count = self.body.op_regions(open.op).len();
        let begins = match self.body.kind(open.op) {
            OpKind::Switch(_) => self.switch_label(&mut open)?,
            OpKind::If if count > 0 => self.parser.eat_word("else"),
            OpKind::Invoke(_) if count > 0 => self.parser.eat_word("unwind"),
            _ => self.parser.is_punct("{"),
        };
        if !begins {
            if let OpKind::Switch(cases) = &mut self.body.ops[open.op].kind {
                *cases = open.cases.into();
            }
            self.region = open.outside;
            return Ok(());
        }
        self.parser.expect("{")?;
        self.region = self.body.add_region(open.op);
        self.stack.push(open);
        if self.parser.is_punct("|") {
            let params = self.parser.list("|", "|", |p| {
                let token = p.advance();
                p.expect(":")?;
                Ok((token, p.ty()?))
            })?;
            for (token, ty) in params {
                let value = self.body.add_param(self.region, ty);
                self.define(value, &token)?;
            }
        }
        Ok(())
    }

    /// Parses `case n` and `default` labels; returns whether a region follows.
    fn switch_label(&mut self, open: &mut OpenOp) -> Result<bool, TextError> {
        while self.parser.eat_word("case") {
            open.cases.push(self.parser.number()?);
            if self.parser.is_punct("{") {
                return Ok(true);
            }
        }
        Ok(self.parser.eat_word("default"))
    }

    // ---- ops -------------------------------------------------------------------------------

    fn op(&mut self) -> Result<(), TextError> {
        let start = self.parser.token().clone();
        let names = self.result_names()?;
        let head = self.head()?;
        let operand_types: Vec<TypeId> = head.args.iter().map(|a| self.arg_type(a)).collect();
        let results = self.result_types(&start, &head, &operand_types)?;
        if results.len() != names.len() {
            let message = format!(
                "the op has {} results, but {} result names",
                results.len(),
                names.len()
            );
            return self.parser.error_at(&start, message);
        }
        let (loc, meta) = self.parser.op_facts()?;
        let mut kind = head.kind;
        fill_alignment(&self.parser.unit, &mut kind, &operand_types, &results);
        let op = self.create_op(kind, &head.args, &results);
        let data = &mut self.body.ops[op];
        data.flags = head.flags;
        data.loc = loc;
        data.meta = self.parser.unit.intern_meta(meta);
        for (index, token) in names.iter().enumerate() {
            let value = self.body.results(op)[index];
            self.define(value, token)?;
        }
        if self.body.kind(op).row().regions == Count::Exactly(0) {
            return Ok(());
        }
        self.next_region(OpenOp {
            op,
            outside: self.region,
            cases: Vec::new(),
        })?;
        for (token, index) in head.params {
            if self.body.op_regions(op).is_empty() {
                return self.parser.error_at(&token, "expected a region");
            }
            let value = self.body.add_param(self.region, operand_types[index]);
            self.define(value, &token)?;
        }
        Ok(())
    }

    fn result_names(&mut self) -> Result<Vec<Token>, TextError> {
        let mut names = Vec::new();
        if matches!(self.parser.peek(), TokenKind::Local(..)) {
            loop {
                names.push(self.parser.advance());
                if !self.parser.eat(",") {
                    break;
                }
            }
            self.parser.expect("=")?;
        }
        Ok(names)
    }

    fn create_op(&mut self, kind: OpKind, args: &[Arg], results: &[TypeId]) -> Op {
        let op = self.body.new_op(kind, &[], results, 0);
        for (index, arg) in args.iter().enumerate() {
            let value = match arg {
                Arg::Value(value) => *value,
                Arg::Forward(token) => {
                    self.unresolved.push((op, index, token.clone()));
                    self.placeholder()
                }
            };
            self.body.add_operand(op, value);
        }
        self.body.append(self.region, op);
        op
    }

    /// Returns the placeholder for an operand with a later definition.
    fn placeholder(&mut self) -> Value {
        let unit = &mut self.parser.unit;
        let ty = unit.types.void();
        let id = unit.consts.intern(ty, ConstKind::Poison);
        self.body.constant(unit, id)
    }

    fn arg_type(&mut self, arg: &Arg) -> TypeId {
        match arg {
            Arg::Value(value) => self.body.ty(*value),
            Arg::Forward(_) => self.parser.unit.types.void(),
        }
    }

    fn result_types(
        &mut self,
        start: &Token,
        head: &OpHead,
        operands: &[TypeId],
    ) -> Result<Vec<TypeId>, TextError> {
        if self.parser.eat("->") {
            let mut types = Vec::new();
            if self.parser.eat("(") {
                self.parser.expect(")")?;
                return Ok(types);
            }
            loop {
                types.push(self.parser.ty()?);
                if !self.parser.eat(",") {
                    return Ok(types);
                }
            }
        }
        let Some(types) = implied(&self.parser.unit, &head.kind, operands) else {
            return Ok(Vec::new());
        };
        if !types.is_empty() && head.args.iter().any(|a| matches!(a, Arg::Forward(_))) {
            let message = "an operand is defined later: write `->` and the result types";
            return self.parser.error_at(start, message);
        }
        let ids = types.into_iter().map(|t| t.intern(&mut self.parser.unit));
        match ids.collect() {
            Some(ids) => Ok(ids),
            None => self.parser.error_at(
                start,
                "the operands do not imply the result types: write `->` and the types",
            ),
        }
    }

    // ---- heads -----------------------------------------------------------------------------

    fn head(&mut self) -> Result<OpHead, TextError> {
        let kind = match self.parser.word().map(|w| self.parser.mnemonics.get(w)) {
            Some(Some(kind)) => kind.clone(),
            Some(None) => return self.parser.error("unknown op"),
            None => return self.parser.error("expected an op"),
        };
        self.parser.at += 1;
        let mut head = OpHead {
            kind,
            flags: self.flags(),
            args: Vec::new(),
            params: Vec::new(),
        };
        if matches!(head.kind, OpKind::Call(_) | OpKind::Invoke(_)) {
            self.call(&mut head)?;
            return Ok(head);
        }
        self.parser.kind_data(&mut head.kind)?;
        if self.has_standard_params(&head.kind) {
            self.loop_operands(&mut head)?;
        } else if matches!(head.kind, OpKind::Foreign(_)) {
            head.args = self.args()?;
        } else if head.kind.row().operands != Count::Exactly(0) {
            self.operands(&mut head)?;
        }
        let count = head.args.len() as u32;
        match &mut head.kind {
            OpKind::ParFor {
                dims, reductions, ..
            } if *dims == INFERRED_DIMS => {
                *dims = count.saturating_sub(reductions.len() as u32);
            }
            OpKind::Spmd { dims, .. } if *dims == INFERRED_DIMS => *dims = count,
            _ => {}
        }
        Ok(head)
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::NONE;
        while let Some(word) = self.parser.word() {
            let named = Flags::NAMES.iter().find(|(_, name)| *name == word);
            match named.map(|(flag, _)| *flag) {
                Some(flag) => flags = flags.with(flag),
                None if word == "fast" => flags = flags.with(Flags::FAST),
                None => break,
            }
            self.parser.at += 1;
        }
        flags
    }

    /// Parses comma-separated operands, up to the end of the line or a token that begins no operand.
    fn operands(&mut self, head: &mut OpHead) -> Result<(), TextError> {
        let owns_regions = head.kind.row().regions != Count::Exactly(0);
        let token = self.parser.token();
        let ends = match &token.kind {
            TokenKind::Punct("{") => owns_regions,
            TokenKind::Punct("}" | "->") | TokenKind::Bang(_) | TokenKind::End => true,
            _ => false,
        };
        if token.first || ends {
            return Ok(());
        }
        loop {
            let arg = self.arg()?;
            head.args.push(arg);
            if !self.parser.eat(",") {
                return Ok(());
            }
        }
    }

    fn arg(&mut self) -> Result<Arg, TextError> {
        if let TokenKind::Local(..) = self.parser.peek() {
            let token = self.parser.advance();
            return Ok(match self.values.get(&key(&token)) {
                Some(value) => Arg::Value(*value),
                None => Arg::Forward(token),
            });
        }
        let id = self.parser.constant()?;
        Ok(Arg::Value(self.body.constant(&self.parser.unit, id)))
    }

    fn args(&mut self) -> Result<Vec<Arg>, TextError> {
        self.parser.expect("(")?;
        let mut args = Vec::new();
        while !self.parser.is_punct(")") {
            if !args.is_empty() {
                self.parser.expect(",")?;
            }
            args.push(self.arg()?);
        }
        self.parser.expect(")")?;
        Ok(args)
    }

    // ---- loops -----------------------------------------------------------------------------

    fn has_standard_params(&self, kind: &OpKind) -> bool {
        let below = matches!(self.parser.peek(), TokenKind::Local(..))
            && *self.parser.peek_after(1) == TokenKind::Punct("<");
        match kind {
            OpKind::Loop { .. } => self.parser.word() == Some("iter"),
            OpKind::For { .. } | OpKind::ParFor { .. } | OpKind::ShareFor { .. } => below,
            _ => false,
        }
    }

    fn index_bound(&mut self, head: &mut OpHead) -> Result<(), TextError> {
        let token = self.parser.advance();
        self.parser.expect("<")?;
        head.params.push((token, head.args.len()));
        let arg = self.arg()?;
        head.args.push(arg);
        Ok(())
    }

    /// Parses `%i < %n iter(%a = %x)` and the variants for the other loop ops.
    fn loop_operands(&mut self, head: &mut OpHead) -> Result<(), TextError> {
        if !matches!(head.kind, OpKind::Loop { .. }) {
            self.index_bound(head)?;
        }
        if let OpKind::ParFor { .. } = head.kind {
            while self.parser.eat(",") {
                self.index_bound(head)?;
            }
            return self.reductions(head);
        }
        if matches!(head.kind, OpKind::ShareFor { .. }) {
            if self.parser.eat_word("chunk") {
                let arg = self.arg()?;
                head.args.push(arg);
            }
            return Ok(());
        }
        if !self.parser.eat_word("iter") {
            return Ok(());
        }
        self.parser.expect("(")?;
        let before = head.params.len();
        while !self.parser.is_punct(")") {
            if head.params.len() > before {
                self.parser.expect(",")?;
            }
            let token = self.parser.advance();
            self.parser.expect("=")?;
            head.params.push((token, head.args.len()));
            let arg = self.arg()?;
            head.args.push(arg);
        }
        self.parser.expect(")")
    }

    fn reductions(&mut self, head: &mut OpHead) -> Result<(), TextError> {
        let mut ops = Vec::new();
        if self.parser.eat_word("reduce") {
            self.parser.expect("(")?;
            while !self.parser.is_punct(")") {
                if !ops.is_empty() {
                    self.parser.expect(",")?;
                }
                ops.push(self.parser.reduction()?);
                let arg = self.arg()?;
                head.args.push(arg);
            }
            self.parser.expect(")")?;
        }
        if let OpKind::ParFor { reductions, .. } = &mut head.kind {
            *reductions = ops.into();
        }
        Ok(())
    }

    // ---- calls -----------------------------------------------------------------------------

    /// Parses `tail cc 8 @f(arguments) bundle "tag"(operands) #attributes : type`.
    fn call(&mut self, head: &mut OpHead) -> Result<(), TextError> {
        let start = self.parser.token().clone();
        let void = self.parser.unit.types.void();
        let mut info = CallInfo::plain(void);
        if let Some(tail) = self.parser.word().and_then(TailKind::from_name) {
            self.parser.at += 1;
            info.tail = tail;
        }
        if self.parser.eat_word("cc") {
            info.convention = self.parser.number()?;
        }
        if !self.parser.is_punct("(") {
            let callee = self.arg()?;
            head.args.push(callee);
        }
        head.args.extend(self.args()?);
        while self.parser.eat_word("bundle") {
            let tag = self.parser.text()?;
            let own = self.args()?;
            info.bundles.push((tag, own.len() as u32));
            head.args.extend(own);
        }
        if let TokenKind::Hash(number) = *self.parser.peek() {
            info.attrs = Some(self.parser.attrs_id(number)?);
            self.parser.at += 1;
        }
        info.signature = match self.parser.eat(":") {
            true => self.parser.ty()?,
            false => match self.declared_type(head.args.first()) {
                Some(ty) => ty,
                None => {
                    let message = "expected `:` and a function type after a call of this callee";
                    return self.parser.error_at(&start, message);
                }
            },
        };
        if let OpKind::Call(own) | OpKind::Invoke(own) = &mut head.kind {
            **own = info;
        }
        Ok(())
    }

    fn declared_type(&self, callee: Option<&Arg>) -> Option<TypeId> {
        let Some(Arg::Value(value)) = callee else {
            return None;
        };
        let unit = &self.parser.unit;
        match unit.constant(self.body.as_const(*value)?).kind {
            ConstKind::Func(func) => Some(unit.functions[func].ty),
            _ => None,
        }
    }
}

/// Returns the lookup key of a value's name. A quoted number is a name, a bare number is not.
fn key(token: &Token) -> String {
    match &token.kind {
        TokenKind::Local(name, true) if super::names::is_number(name) => format!("\"{name}"),
        TokenKind::Local(name, _) => name.clone(),
        _ => String::new(),
    }
}

/// Sets an omitted alignment to the natural alignment.
fn fill_alignment(unit: &Unit, kind: &mut OpKind, operands: &[TypeId], results: &[TypeId]) {
    let natural = accessed(kind, operands, results)
        .filter(|ty| !matches!(unit.types.get(*ty), Type::Void))
        .map_or(1, |ty| unit.layout.align_bytes(unit, ty) as u32);
    if let Some(access) = access_mut(kind)
        && access.align_bytes == 0
    {
        access.align_bytes = natural;
    }
}
