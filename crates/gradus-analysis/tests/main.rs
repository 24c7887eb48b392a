//! Tests of alias analysis, effects, clobbers, trip counts, affine forms, access ranges and variance on
//! small bodies in text form.

mod alias;
mod bench_programs;
mod clobber;
mod effects;
mod loops;
mod machine;
mod oracle;
mod programs;
mod scale;

use gradus_analysis::{AccessKind, Alias, AliasOptions, CallGraph, Effects, MemoryAccess};
use gradus_ir::{Body, FuncId, Op, OpKind, Unit, Value, parse};

/// A unit parsed from text, and its function `@f`.
pub(crate) struct Program {
    pub(crate) unit: Unit,
    pub(crate) func: FuncId,
    pub(crate) effects: Effects,
}

impl Program {
    /// Parses `text` and analyses `@f`.
    pub(crate) fn read(text: &str) -> Program {
        let unit = match parse(text, "test.gir") {
            Ok(unit) => unit,
            Err(e) => panic!("{e}: {:?}\n{text}", e.labels),
        };
        let func = unit.function("f").expect("the text defines @f");
        let closure = CallGraph::of(&unit, &[func]);
        let effects = Effects::of(&unit, &closure);
        Program {
            unit,
            func,
            effects,
        }
    }
    pub(crate) fn body(&self) -> &Body {
        self.unit.functions[self.func]
            .body
            .as_deref()
            .expect("@f has a body")
    }
    pub(crate) fn alias(&self) -> Alias<'_> {
        self.alias_with(&AliasOptions::default())
    }
    pub(crate) fn alias_with(&self, options: &AliasOptions) -> Alias<'_> {
        Alias::new(
            &self.unit,
            Some(self.func),
            self.body(),
            &self.effects,
            options,
        )
    }
    /// Returns the value named `name`.
    pub(crate) fn value(&self, name: &str) -> Value {
        let body = self.body();
        let found = body.values.ids().find(|v| body.name(*v) == Some(name));
        found.unwrap_or_else(|| panic!("no value is called {name}"))
    }
    /// Returns the op that defines the value named `name`.
    pub(crate) fn op(&self, name: &str) -> Op {
        let made = self.body().def_op(self.value(name));
        made.unwrap_or_else(|| panic!("no op makes {name}"))
    }
    /// Returns the store to the pointer named `pointer`.
    pub(crate) fn store(&self, pointer: &str) -> Op {
        let (body, pointer) = (self.body(), self.value(pointer));
        let stores =
            |op: &Op| matches!(body.kind(*op), OpKind::Store(_)) && body.operand(*op, 1) == pointer;
        let found = body.walk(body.root()).find(stores);
        found.expect("a store to the pointer of that name")
    }
    /// Returns call number `index` of the function named `name`.
    pub(crate) fn call(&self, name: &str, index: usize) -> Op {
        let body = self.body();
        let func = self.unit.function(name);
        let calls = |op: &Op| self.unit.callee(body, *op) == func && func.is_some();
        let found = body.walk(body.root()).filter(calls).nth(index);
        found.unwrap_or_else(|| panic!("no call number {index} of {name}"))
    }
    /// Returns loop op number `index`, in program order.
    pub(crate) fn lp(&self, index: usize) -> Op {
        let body = self.body();
        let loops = |op: &Op| gradus_analysis::is_loop(body.kind(*op));
        let found = body.walk(body.root()).filter(loops).nth(index);
        found.unwrap_or_else(|| panic!("no loop number {index}"))
    }
    /// Returns the only access of `kind` by an op.
    pub(crate) fn access(&self, op: Op, kind: AccessKind) -> MemoryAccess {
        let list = self.effects.of_op(&self.unit, self.body(), op);
        let found: Vec<_> = list.into_iter().filter(|a| a.kind == kind).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }
    /// Returns the read of the load that defines the value named `name`.
    pub(crate) fn read_of(&self, name: &str) -> MemoryAccess {
        self.access(self.op(name), AccessKind::Read)
    }
    /// Returns the write of the store to the pointer named `pointer`.
    pub(crate) fn write_to(&self, pointer: &str) -> MemoryAccess {
        self.access(self.store(pointer), AccessKind::Write)
    }
}
