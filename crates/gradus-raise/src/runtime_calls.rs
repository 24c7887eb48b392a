//! OpenMP runtime calls: identifies calls and decodes their arguments.
//!
//! Used by every step. gradus-ir's table of external functions holds the names; here are only the ids,
//! collected once per unit.

use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::{
    Body, ConstKind, FuncId, GlobalId, LocId, Op, OpKind, SourceSpan, Symbol, Unit, Value,
};
use std::collections::HashMap;

/// The runtime functions declared in a unit.
#[derive(Debug)]
pub(crate) struct RuntimeCalls {
    ids: HashMap<FuncId, OpenMpFn>,
}

impl RuntimeCalls {
    pub fn of(unit: &Unit) -> RuntimeCalls {
        let known = |func| match unit.known(func) {
            Some(ExternalFn::OpenMp(id)) => Some((func, id)),
            _ => None,
        };
        RuntimeCalls {
            ids: unit.functions.ids().filter_map(known).collect(),
        }
    }
    /// Returns true if the unit declares no runtime function.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
    /// Returns the runtime function that `op` calls.
    pub fn id(&self, unit: &Unit, body: &Body, op: Op) -> Option<OpenMpFn> {
        self.ids.get(&unit.callee(body, op)?).copied()
    }
    /// Returns all runtime calls under the root, in program order.
    pub fn list(&self, unit: &Unit, body: &Body) -> Vec<(Op, OpenMpFn)> {
        let id = |op| self.id(unit, body, op).map(|id| (op, id));
        body.walk(body.root()).filter_map(id).collect()
    }
    /// Returns the calls of one runtime function.
    pub fn of_kind(&self, unit: &Unit, body: &Body, wanted: OpenMpFn) -> Vec<Op> {
        let mut list = self.list(unit, body);
        list.retain(|(_, id)| *id == wanted);
        list.into_iter().map(|(op, _)| op).collect()
    }
}

/// Returns the source location of a runtime call: the debug location, or the location argument of the call
/// (`;file;function;line;column;;`).
pub(crate) fn span_of(unit: &Unit, body: &Body, op: Op) -> Option<SourceSpan> {
    outermost(unit, body.ops[op].loc).or_else(|| location_argument(unit, body, op))
}

fn outermost(unit: &Unit, loc: Option<LocId>) -> Option<SourceSpan> {
    unit.span(loc).filter(|span| span.line > 0)
}

fn location_argument(unit: &Unit, body: &Body, op: Op) -> Option<SourceSpan> {
    body.kind(op).call_info()?;
    let location = *unit.call_args(body, op).first()?;
    let ident = global_value(unit, body, location)?;
    let init = unit.globals[ident].init.as_ref()?;
    let text = init.relocations.first()?;
    let Symbol::Global(text) = text.target else {
        return None;
    };
    let bytes = &unit.globals[text].init.as_ref()?.bytes;
    let text = std::str::from_utf8(bytes).ok()?;
    let mut parts = text.split(';').skip(1);
    let (file, _function) = (parts.next()?, parts.next()?);
    // Without debug information compilers state line 0.
    let line = parts.next()?.parse().ok().filter(|line| *line > 0)?;
    let column = parts.next()?.parse().ok()?;
    Some(SourceSpan {
        file: file.to_string(),
        line,
        column,
        called_at: None,
    })
}

/// Returns the global variable at whose start `value` points.
pub(crate) fn global_value(unit: &Unit, body: &Body, value: Value) -> Option<GlobalId> {
    match unit.constant(body.as_const(value)?).kind {
        ConstKind::Global { global, offset: 0 } => Some(global),
        _ => None,
    }
}

/// Returns the allocation whose address is `value`.
pub(crate) fn slot_value(body: &Body, value: Value) -> Option<Op> {
    let op = body.def_op(value)?;
    matches!(body.kind(op), OpKind::Alloca(_)).then_some(op)
}
