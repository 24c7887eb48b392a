//! Value names in the text form: the values' own names, made unique, or numbers in textual order.

use super::lex;
use crate::{Body, Entity, Op, Region, Value};
use std::collections::{HashMap, HashSet};

/// A work item of the walk over a body in textual order.
enum Step {
    Enter(Region),
    Ops(Option<Op>),
}

/// The names of a body's values, without sigil.
#[derive(Debug)]
pub(super) struct Names {
    /// Name and textual definition order, indexed by value.
    names: Vec<Option<(Box<str>, u32)>>,
}

impl Names {
    /// Names all values that the body's text defines. `param_names` names function parameters without a name
    /// in the body.
    pub fn of(body: &Body, param_names: &[Option<String>]) -> Self {
        let mut namer = Namer {
            body,
            names: vec![None; body.values.len()],
            defined: 0,
            used_names: HashSet::new(),
            suffixes: HashMap::new(),
            next: 0,
        };
        for (index, &param) in body.params().iter().enumerate() {
            let own = body.name(param);
            let source = param_names.get(index).and_then(|n| n.as_deref());
            namer.name(param, own.or(source));
        }
        namer.walk();
        Names { names: namer.names }
    }

    /// Returns the name of a value; `?` for a value that the text does not define.
    pub fn get(&self, value: Value) -> &str {
        self.names
            .get(value.index())
            .and_then(|n| n.as_ref())
            .map_or("?", |(name, _)| name)
    }

    /// Returns the number of values that the text defines before `value`.
    pub fn position(&self, value: Value) -> u32 {
        let named = self.names.get(value.index()).and_then(|n| n.as_ref());
        named.map_or(u32::MAX, |(_, position)| *position)
    }
}

struct Namer<'a> {
    body: &'a Body,
    names: Vec<Option<(Box<str>, u32)>>,
    defined: u32,
    used_names: HashSet<String>,
    suffixes: HashMap<String, u32>,
    next: u32,
}

impl Namer<'_> {
    fn walk(&mut self) {
        let body = self.body;
        let mut stack = vec![Step::Ops(body.first(body.root()))];
        while let Some(step) = stack.pop() {
            match step {
                Step::Ops(None) => {}
                Step::Ops(Some(op)) => {
                    for &result in body.results(op) {
                        self.name(result, body.name(result));
                    }
                    stack.push(Step::Ops(body.next(op)));
                    stack.extend(body.op_regions(op).iter().rev().map(|r| Step::Enter(*r)));
                }
                Step::Enter(region) => {
                    for &param in body.region_params(region) {
                        self.name(param, body.name(param));
                    }
                    stack.push(Step::Ops(body.first(region)));
                }
            }
        }
    }

    fn name(&mut self, value: Value, name: Option<&str>) {
        let text = match name.filter(|n| !n.is_empty()) {
            None => {
                self.next += 1;
                (self.next - 1).to_string()
            }
            Some(name) => self.unique(name),
        };
        self.names[value.index()] = Some((text.into(), self.defined));
        self.defined += 1;
    }

    fn unique(&mut self, name: &str) -> String {
        let mut text = name.to_string();
        while !self.used_names.insert(text.clone()) {
            let suffix = self.suffixes.entry(name.to_string()).or_insert(0);
            *suffix += 1;
            text = format!("{name}.{suffix}");
        }
        match lex::is_bare(&text) && !is_number(&text) {
            true => text,
            false => lex::quoted(&text),
        }
    }
}

/// Returns whether a bare name denotes an unnamed, numbered value.
pub(super) fn is_number(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether an attribute's name needs no quotes.
pub(super) fn is_attribute_word(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
