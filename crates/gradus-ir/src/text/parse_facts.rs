//! The parser of numbered lines (locations, alias scopes, TBAA types, attribute sets) and of the facts after
//! `!` on an op.

use super::TextError;
use super::lex::TokenKind;
use super::parse::{Parser, number_items};
use crate::{
    AliasScope, Attr, AttrSet, AttrValue, AttrsId, LocId, Location, Meta, ScopeId,
    TbaaStructMember, TbaaTag, TbaaType, TbaaTypeId,
};

impl Parser {
    /// Assigns ids to all numbered lines, to allow forward references between facts.
    pub(super) fn number_facts(&mut self) {
        let (locations, scopes, types) = (
            self.numbered("loc"),
            self.numbered("scope"),
            self.numbered("tbaa"),
        );
        number_items(locations.into_iter(), &mut self.locations);
        number_items(scopes.into_iter(), &mut self.scopes);
        number_items(types.into_iter(), &mut self.tbaa_types);
    }

    /// Rejects a number on two lines: a duplicate would shift the ids of all later lines.
    pub(super) fn check_facts(&self) -> Result<(), TextError> {
        let defined = [
            ("loc", self.unit.locations.len(), self.locations.len()),
            ("scope", self.unit.scopes.len(), self.scopes.len()),
            ("tbaa", self.unit.tbaa_types.len(), self.tbaa_types.len()),
        ];
        match defined.iter().find(|(_, lines, numbers)| lines != numbers) {
            Some((word, ..)) => self.error(format!("two `{word}` lines have the same number")),
            None => Ok(()),
        }
    }

    /// Parses one numbered line.
    pub(super) fn numbered_line(&mut self, word: &str) -> Result<(), TextError> {
        if !matches!(word, "loc" | "scope" | "tbaa" | "attrs") {
            return self.error(
                "expected `layout`, `type`, `tbaa`, `scope`, `loc`, `attrs`, `global`, `declare` or `func`",
            );
        }
        if !self.token().first {
            return self.error("expected the start of a line");
        }
        self.at += 1;
        let number: u64 = self.number()?;
        self.expect("=")?;
        match word {
            "loc" => self.location(),
            "scope" => self.scope(),
            "tbaa" => self.tbaa_type(),
            _ => self.attr_set(number),
        }
    }

    fn location(&mut self) -> Result<(), TextError> {
        let span = self.span()?;
        self.word_or_error("in")?;
        let function = self.text()?;
        let inlined_at = match self.eat_word("at") {
            true => Some(self.loc_id()?),
            false => None,
        };
        let host = self.host()?;
        self.unit.locations.push(Location {
            span,
            function,
            inlined_at,
            host,
        });
        Ok(())
    }

    fn scope(&mut self) -> Result<(), TextError> {
        let name = self.text()?;
        self.word_or_error("in")?;
        let domain = self.text()?;
        let host = self.host()?;
        self.unit.scopes.push(AliasScope { name, domain, host });
        Ok(())
    }

    fn tbaa_type(&mut self) -> Result<(), TextError> {
        let name = self.text()?;
        let members = self.list("(", ")", |p| {
            let offset = p.number()?;
            p.expect(":")?;
            Ok((offset, p.tbaa_id()?))
        })?;
        let host = self.host()?;
        self.unit.tbaa_types.push(TbaaType {
            name,
            members,
            host,
        });
        Ok(())
    }

    fn attr_set(&mut self, number: u64) -> Result<(), TextError> {
        let mut set = AttrSet::default();
        while !self.token().first {
            let token = self.advance();
            match &token.kind {
                TokenKind::Word(w) if w == "fn" => set.function = self.attr_list()?,
                TokenKind::Word(w) if w == "result" => set.result = self.attr_list()?,
                TokenKind::Word(w) if w == "param" => {
                    let list = self.attr_list()?;
                    set.params.push(list);
                }
                TokenKind::End => break,
                _ => return self.error_at(&token, "expected `fn(…)`, `result(…)` or `param(…)`"),
            }
        }
        let id = self.unit.intern_attrs(set);
        match self.attrs.insert(number, id) {
            None => Ok(()),
            Some(_) => self.error(format!("two `attrs` lines have the number {number}")),
        }
    }

    fn attr_list(&mut self) -> Result<Vec<Attr>, TextError> {
        self.list("(", ")", |p| {
            let token = p.advance();
            let name = match token.kind {
                TokenKind::Word(name) | TokenKind::Text(name) => name,
                _ => return p.error_at(&token, "expected an attribute name"),
            };
            let value = if !p.eat("=") {
                AttrValue::Flag
            } else if p.eat_word("type") {
                AttrValue::Type(p.ty()?)
            } else if p.eat_word("host") {
                AttrValue::Host(p.number()?)
            } else if matches!(p.peek(), TokenKind::Text(_)) {
                AttrValue::Text(p.text()?)
            } else {
                AttrValue::Int(p.number()?)
            };
            Ok(Attr { name, value })
        })
    }

    fn host(&mut self) -> Result<Option<u32>, TextError> {
        match self.eat_word("host") {
            true => Ok(Some(self.number()?)),
            false => Ok(None),
        }
    }

    fn word_or_error(&mut self, word: &str) -> Result<(), TextError> {
        match self.eat_word(word) {
            true => Ok(()),
            false => self.error(format!("expected `{word}`")),
        }
    }

    // ---- references ------------------------------------------------------------------------

    fn loc_id(&mut self) -> Result<LocId, TextError> {
        let token = self.token().clone();
        let number: u64 = self.number()?;
        match self.locations.get(&number) {
            Some(id) => Ok(*id),
            None => self.error_at(&token, format!("no line defines `loc {number}`")),
        }
    }

    fn scope_id(&mut self) -> Result<ScopeId, TextError> {
        let token = self.token().clone();
        let number: u64 = self.number()?;
        match self.scopes.get(&number) {
            Some(id) => Ok(*id),
            None => self.error_at(&token, format!("no line defines `scope {number}`")),
        }
    }

    fn tbaa_id(&mut self) -> Result<TbaaTypeId, TextError> {
        let token = self.token().clone();
        let number: u64 = self.number()?;
        match self.tbaa_types.get(&number) {
            Some(id) => Ok(*id),
            None => self.error_at(&token, format!("no line defines `tbaa {number}`")),
        }
    }

    /// Returns the attribute set with the given number; the caller consumes the token.
    pub(super) fn attrs_id(&self, number: u64) -> Result<AttrsId, TextError> {
        match self.attrs.get(&number) {
            Some(id) => Ok(*id),
            None => self.error(format!("no earlier line defines `attrs {number}`")),
        }
    }

    /// Parses the facts after an op: location and metadata.
    pub(super) fn op_facts(&mut self) -> Result<(Option<LocId>, Meta), TextError> {
        let mut loc = None;
        let mut meta = Meta::default();
        while let TokenKind::Bang(word) = self.peek() {
            let word = word.clone();
            let token = self.advance();
            match word.as_str() {
                "loc" => {
                    self.expect("(")?;
                    loc = Some(self.loc_id()?);
                    self.expect(")")?;
                }
                "tbaa" => meta.tbaa = Some(self.tbaa_tag()?),
                "copied" => meta.tbaa_struct = self.list("(", ")", Self::copied_member)?,
                "scopes" => {
                    meta.alias_scopes = self.list("(", ")", Self::scope_id)?;
                    meta.alias_scopes.sort_unstable();
                }
                "noalias" => {
                    meta.noalias = self.list("(", ")", Self::scope_id)?;
                    meta.noalias.sort_unstable();
                }
                "host" => {
                    meta.host = self.list("(", ")", |p| Ok((p.text()?, p.number()?)))?;
                    meta.host.sort_unstable();
                }
                _ => return self.error_at(&token, format!("unknown metadata `!{word}`")),
            }
        }
        Ok((loc, meta))
    }

    fn copied_member(&mut self) -> Result<TbaaStructMember, TextError> {
        let offset_bytes = self.number()?;
        self.expect(":")?;
        let size_bytes = self.number()?;
        let tag = self.tbaa_tag()?;
        Ok(TbaaStructMember {
            offset_bytes,
            size_bytes,
            tag,
        })
    }

    fn tbaa_tag(&mut self) -> Result<TbaaTag, TextError> {
        self.expect("(")?;
        let base = self.tbaa_id()?;
        self.expect(",")?;
        let access = self.tbaa_id()?;
        self.expect(",")?;
        let offset_bytes = self.number()?;
        let constant = self.eat(",");
        if constant {
            self.word_or_error("const")?;
        }
        self.expect(")")?;
        Ok(TbaaTag {
            base,
            access,
            offset_bytes,
            constant,
        })
    }
}
