//! The printer of ops and bodies.
//!
//! The syntax of an op is `results = keyword flags data operands -> result types !facts {regions}`. Loops
//! with the standard region parameters show the parameters beside the initial values.

use super::lex::quoted;
use super::names::Names;
use super::print_const::TypePrinter;
use super::print_kind::{KindPrinter, accessed};
use crate::result_types::implied;
use crate::{
    AttrSet, AttrsId, Body, CallInfo, ConstKind, Flags, Meta, Op, OpKind, Region, TailKind,
    TbaaTag, TypeId, Unit,
};
use crate::{Entity, Value};

/// The maximum indentation level; keeps the text of deep nests linear in size.
const MAX_INDENT: usize = 40;

/// A printer of single ops of one body, for diagnostics and reports.
#[derive(Debug)]
pub struct OpPrinter<'a> {
    unit: &'a Unit,
    body: &'a Body,
    types: TypePrinter<'a>,
    names: Names,
}

enum Step {
    Ops(Option<Op>),
    Region(Op, usize),
    Close(Op),
}

impl<'a> OpPrinter<'a> {
    /// Creates a printer for `body`; `param_names` names function parameters without a name in the body.
    pub fn new(unit: &'a Unit, body: &'a Body, param_names: &[Option<String>]) -> Self {
        OpPrinter {
            unit,
            body,
            types: TypePrinter::new(unit),
            names: Names::of(body, param_names),
        }
    }

    /// Returns an op's text on one line, without regions.
    pub fn line(&self, op: Op) -> String {
        let mut out = String::new();
        self.head(&mut out, op);
        out
    }

    /// Returns the text of a value at a use.
    pub fn value(&self, value: Value) -> String {
        match self.body.as_const(value) {
            Some(id) => {
                let mut out = String::new();
                self.types.write_const(&mut out, id);
                out
            }
            None => format!("%{}", self.names.get(value)),
        }
    }

    /// Returns a parameter and the type.
    pub(super) fn param(&self, value: Value) -> String {
        format!(
            "{}: {}",
            self.value(value),
            self.types.text(self.body.ty(value))
        )
    }

    pub(super) fn types(&self) -> &TypePrinter<'a> {
        &self.types
    }

    /// Appends the ops of the whole body to `out`.
    pub(super) fn body(&self, out: &mut String) {
        let mut stack = vec![Step::Ops(self.body.first(self.body.root()))];
        let mut depth = 1;
        while let Some(step) = stack.pop() {
            match step {
                Step::Ops(None) => {}
                Step::Ops(Some(op)) => {
                    indent(out, depth);
                    self.head(out, op);
                    stack.push(Step::Ops(self.body.next(op)));
                    stack.push(Step::Close(op));
                    let count = self.body.op_regions(op).len();
                    stack.extend((0..count).rev().map(|i| Step::Region(op, i)));
                    depth += usize::from(count > 0);
                }
                Step::Region(op, index) => {
                    let region = self.body.op_regions(op)[index];
                    if index > 0 {
                        indent(out, depth - 1);
                        out.push('}');
                    }
                    self.open(out, op, index, region);
                    stack.push(Step::Ops(self.body.first(region)));
                }
                Step::Close(op) => {
                    if !self.body.op_regions(op).is_empty() {
                        depth -= 1;
                        indent(out, depth);
                        out.push('}');
                    }
                    self.missing_regions(out, op);
                    out.push('\n');
                }
            }
        }
    }

    /// Appends label, brace and parameters at the start of a region.
    fn open(&self, out: &mut String, op: Op, index: usize, region: Region) {
        match self.body.kind(op) {
            OpKind::If if index > 0 => out.push_str(" else"),
            OpKind::Invoke(_) if index > 0 => out.push_str(" unwind"),
            OpKind::Switch(cases) => match cases.get(index) {
                Some(case) => out.push_str(&format!(" case {case}")),
                None => out.push_str(" default"),
            },
            _ => {}
        }
        out.push_str(" {");
        let params = self.body.region_params(region);
        let shown = index == 0 && self.has_standard_params(op);
        if !params.is_empty() && !shown {
            let params: Vec<String> = params.iter().map(|p| self.param(*p)).collect();
            out.push_str(&format!(" |{}|", params.join(", ")));
        }
        out.push('\n');
    }

    /// Appends the remaining cases of a switch with too few regions.
    fn missing_regions(&self, out: &mut String, op: Op) {
        if let OpKind::Switch(cases) = self.body.kind(op) {
            for case in cases.iter().skip(self.body.op_regions(op).len()) {
                out.push_str(&format!(" case {case}"));
            }
        }
    }

    /// Returns whether the parameters of a loop's only region are the parameters implied by the operands.
    /// Such parameters are shown beside the operands.
    fn has_standard_params(&self, op: Op) -> bool {
        let Some(region) = self.body.op_regions(op).first() else {
            return false;
        };
        let params = self.body.region_params(*region);
        let same = |values: &[Value]| {
            values.len() == params.len()
                && std::iter::zip(values, params).all(|(v, p)| self.body.ty(*v) == self.body.ty(*p))
        };
        let operands: Vec<Value> = self.body.operands(op).collect();
        match self.body.kind(op) {
            OpKind::Loop { .. } => !operands.is_empty() && same(&operands),
            OpKind::For { .. } => same(&operands),
            OpKind::ShareFor { chunked, .. } => {
                operands.len() == 1 + usize::from(*chunked) && same(&operands[..1])
            }
            OpKind::ParFor {
                dims, reductions, ..
            } => {
                let dims = *dims as usize;
                dims > 0 && operands.len() == dims + reductions.len() && same(&operands[..dims])
            }
            _ => false,
        }
    }

    // ---- one op ----------------------------------------------------------------------------

    fn head(&self, out: &mut String, op: Op) {
        let data = &self.body.ops[op];
        let results = self.body.results(op);
        if !results.is_empty() {
            let names: Vec<String> = results.iter().map(|r| self.value(*r)).collect();
            out.push_str(&names.join(", "));
            out.push_str(" = ");
        }
        out.push_str(data.kind.mnemonic());
        self.flags(out, data.flags);
        let operands: Vec<Value> = self.body.operands(op).collect();
        let operand_types: Vec<TypeId> = operands.iter().map(|v| self.body.ty(*v)).collect();
        let result_types: Vec<TypeId> = results.iter().map(|v| self.body.ty(*v)).collect();
        match &data.kind {
            OpKind::Call(info) | OpKind::Invoke(info) => self.call(out, info, &operands),
            _ if self.has_standard_params(op) => self.loop_operands(out, op, &operands),
            kind => {
                let words = KindPrinter {
                    unit: self.unit,
                    types: &self.types,
                    accessed: accessed(kind, &operand_types, &result_types),
                    operands: operands.len(),
                }
                .keywords(kind);
                for word in words {
                    out.push(' ');
                    out.push_str(&word);
                }
                if let OpKind::Foreign(_) = kind {
                    out.push_str(&format!("({})", self.list(&operands)));
                } else if !operands.is_empty() {
                    out.push(' ');
                    out.push_str(&self.list(&operands));
                }
            }
        }
        let forward = self.has_forward_reference(op, &operands);
        self.result_types(out, &data.kind, &operand_types, &result_types, forward);
        if let Some(id) = data.meta {
            out.push_str(&meta_text(self.unit.meta(id)));
        }
        if let Some(loc) = data.loc {
            out.push_str(&format!(" !loc({})", loc.index()));
        }
    }

    fn flags(&self, out: &mut String, flags: Flags) {
        let mut rest = flags;
        if flags.has(Flags::FAST) {
            rest = flags.without(Flags::FAST);
        }
        for (flag, name) in Flags::NAMES {
            if rest.has(*flag) {
                out.push(' ');
                out.push_str(name);
            }
        }
        if flags.has(Flags::FAST) {
            out.push_str(" fast");
        }
    }

    fn list(&self, values: &[Value]) -> String {
        let texts: Vec<String> = values.iter().map(|v| self.value(*v)).collect();
        texts.join(", ")
    }

    /// Returns whether an operand is defined after the op (a rule violation that the text form can express).
    fn has_forward_reference(&self, op: Op, operands: &[Value]) -> bool {
        let Some(&result) = self.body.results(op).first() else {
            return false;
        };
        let own = self.names.position(result);
        let behind = |v: &Value| self.body.as_const(*v).is_none() && self.names.position(*v) >= own;
        operands.iter().any(behind)
    }

    /// Appends ` -> types`, unless the operands imply exactly the result types.
    fn result_types(
        &self,
        out: &mut String,
        kind: &OpKind,
        operands: &[TypeId],
        own: &[TypeId],
        forward: bool,
    ) {
        let unsaid = match implied(self.unit, kind, operands) {
            Some(_) if forward => false,
            Some(types) => {
                types.len() == own.len()
                    && std::iter::zip(&types, own).all(|(a, b)| a.is(self.unit, *b))
            }
            None => own.is_empty(),
        };
        if unsaid {
            return;
        }
        let texts: Vec<String> = own.iter().map(|ty| self.types.text(*ty)).collect();
        match texts.is_empty() {
            true => out.push_str(" -> ()"),
            false => out.push_str(&format!(" -> {}", texts.join(", "))),
        }
    }

    /// Appends the operands of a loop, beside the region parameters that the operands initialise.
    fn loop_operands(&self, out: &mut String, op: Op, operands: &[Value]) {
        let kind = self.body.kind(op);
        let params = self.body.region_params(self.body.op_regions(op)[0]);
        let below = |i: usize| format!("{} < {}", self.value(params[i]), self.value(operands[i]));
        let carried = |from: usize| {
            let pairs = std::iter::zip(&params[from..], &operands[from..]);
            let texts: Vec<String> = pairs
                .map(|(p, v)| format!("{} = {}", self.value(*p), self.value(*v)))
                .collect();
            match texts.is_empty() {
                true => String::new(),
                false => format!(" iter({})", texts.join(", ")),
            }
        };
        let mut words = KindPrinter {
            unit: self.unit,
            types: &self.types,
            accessed: None,
            operands: operands.len(),
        }
        .keywords(kind)
        .join(" ");
        if !words.is_empty() {
            words.insert(0, ' ');
        }
        match kind {
            OpKind::For { .. } => out.push_str(&format!("{words} {}{}", below(0), carried(1))),
            OpKind::Loop { .. } => out.push_str(&format!("{words}{}", carried(0))),
            OpKind::ShareFor { chunked, .. } => {
                out.push_str(&format!("{words} {}", below(0)));
                if *chunked {
                    out.push_str(&format!(" chunk {}", self.value(operands[1])));
                }
            }
            OpKind::ParFor {
                dims,
                reductions,
                grain,
            } => {
                if let Some(n) = grain {
                    out.push_str(&format!(" grain {n}"));
                }
                let dims = *dims as usize;
                let ranges: Vec<String> = (0..dims).map(below).collect();
                out.push_str(&format!(" {}", ranges.join(", ")));
                let pairs: Vec<String> = std::iter::zip(reductions, &operands[dims..])
                    .map(|(r, v)| format!("{} {}", r.name(), self.value(*v)))
                    .collect();
                if !pairs.is_empty() {
                    out.push_str(&format!(" reduce({})", pairs.join(", ")));
                }
            }
            _ => out.push_str(&format!("{words} {}", below(0))),
        }
    }

    /// Appends `tail cc 8 @f(arguments) bundle "tag"(operands) #attributes : type`.
    fn call(&self, out: &mut String, info: &CallInfo, operands: &[Value]) {
        if info.tail != TailKind::None {
            out.push_str(&format!(" {}", info.tail.name()));
        }
        if info.convention != 0 {
            out.push_str(&format!(" cc {}", info.convention));
        }
        let bundled: usize = info.bundles.iter().map(|(_, n)| *n as usize).sum();
        let end = operands.len().saturating_sub(bundled);
        let (direct, mut rest) = operands.split_at(end);
        out.push(' ');
        if let [callee, args @ ..] = direct {
            out.push_str(&format!("{}({})", self.value(*callee), self.list(args)));
        } else {
            out.push_str("()");
        }
        for (tag, count) in &info.bundles {
            let (own, others) = rest.split_at((*count as usize).min(rest.len()));
            out.push_str(&format!(" bundle {}({})", quoted(tag), self.list(own)));
            rest = others;
        }
        if let Some(number) = info.attrs.and_then(|id| attrs_number(self.unit, id)) {
            out.push_str(&format!(" #{number}"));
        }
        let declared = operands.first().and_then(|callee| {
            let id = self.body.as_const(*callee)?;
            match self.unit.constant(id).kind {
                ConstKind::Func(func) => Some(self.unit.functions[func].ty),
                _ => None,
            }
        });
        if declared != Some(info.signature) {
            out.push_str(&format!(" : {}", self.types.text(info.signature)));
        }
    }
}

/// Returns the number of an attribute set in the text; `None` for the empty set.
pub(super) fn attrs_number(unit: &Unit, id: AttrsId) -> Option<usize> {
    let empty = unit.find_attrs(&AttrSet::default());
    match empty {
        Some(empty) if empty == id => None,
        Some(empty) if empty < id => Some(id.index() - 1),
        _ => Some(id.index()),
    }
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth.min(MAX_INDENT) {
        out.push_str("  ");
    }
}

fn tag_text(tag: &TbaaTag) -> String {
    let constant = if tag.constant { ", const" } else { "" };
    format!(
        "({}, {}, {}{constant})",
        tag.base.index(),
        tag.access.index(),
        tag.offset_bytes
    )
}

fn meta_text(meta: &Meta) -> String {
    let mut out = String::new();
    if let Some(tag) = &meta.tbaa {
        out.push_str(&format!(" !tbaa{}", tag_text(tag)));
    }
    if !meta.tbaa_struct.is_empty() {
        let members: Vec<String> = (meta.tbaa_struct.iter())
            .map(|m| format!("{}: {} {}", m.offset_bytes, m.size_bytes, tag_text(&m.tag)))
            .collect();
        out.push_str(&format!(" !copied({})", members.join(", ")));
    }
    for (word, scopes) in [("scopes", &meta.alias_scopes), ("noalias", &meta.noalias)] {
        if !scopes.is_empty() {
            let numbers: Vec<String> = scopes.iter().map(|s| s.index().to_string()).collect();
            out.push_str(&format!(" !{word}({})", numbers.join(", ")));
        }
    }
    if !meta.host.is_empty() {
        let pairs: Vec<String> = meta
            .host
            .iter()
            .map(|(kind, n)| format!("{} {n}", quoted(kind)))
            .collect();
        out.push_str(&format!(" !host({})", pairs.join(", ")));
    }
    out
}
