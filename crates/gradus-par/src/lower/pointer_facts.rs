//! Pointer facts of an outlined loop function: attributes of captured pointers, e.g. `dereferenceable`, which
//! permit speculative loads.

use crate::lower::Lowering;
use gradus_ir::{AllocaStorage, Attr, AttrValue, Body, FuncId, OpKind, Value};

/// Pointer attributes that hold for a value throughout the call that received the value.
const LASTING_ATTRIBUTES: [&str; 5] = [
    "nonnull",
    "noundef",
    "dereferenceable",
    "dereferenceable_or_null",
    "align",
];

impl Lowering<'_> {
    /// Attaches the attributes of the captured values to the parameters of `func` from index `at`.
    pub(crate) fn attach_pointer_facts(
        &mut self,
        body: &Body,
        func: FuncId,
        at: usize,
        captured: &[Value],
    ) {
        let known: Vec<Vec<Attr>> = captured
            .iter()
            .map(|v| self.pointer_attributes(body, *v))
            .collect();
        if known.iter().all(Vec::is_empty) {
            return;
        }
        let mut attrs = self.unit.attrs(self.unit.functions[func].attrs).clone();
        attrs.params.resize(at, Vec::new());
        attrs.params.extend(known);
        self.unit.functions[func].attrs = self.unit.intern_attrs(attrs);
    }

    fn pointer_attributes(&self, body: &Body, value: Value) -> Vec<Attr> {
        if let Some(index) = body.params().iter().position(|param| *param == value) {
            let own = self.unit.attrs(self.unit.functions[self.func].attrs);
            let own = own.params.get(index).into_iter().flatten();
            let lasting = own.filter(|attr| LASTING_ATTRIBUTES.contains(&attr.name.as_str()));
            return lasting.cloned().collect();
        }
        let size_bytes = body.def_op(value).and_then(|op| match body.kind(op) {
            OpKind::Alloca(info) if info.storage == AllocaStorage::Frame => {
                let count = u64::try_from(body.as_int(self.unit, body.operand(op, 0))?).ok()?;
                count.checked_mul(self.unit.layout.size_bytes(self.unit, info.ty))
            }
            _ => None,
        });
        let of_size = |bytes| Attr {
            name: "dereferenceable".to_string(),
            value: AttrValue::Int(bytes),
        };
        let there = size_bytes.filter(|bytes| *bytes > 0);
        there.map(of_size).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::lower::lowered;
    use gradus_ir::{AttrValue, Symbol};

    #[test]
    fn dereferenceable_reaches_range_fn() {
        let text = "attrs 0 = fn() param(nonnull, dereferenceable = 16, readonly) param()
             func @f(%p: ptr, %q: ptr, %n: i64) #0 {
               %t = alloca f64, 2
               store 1.0, %t
               par.for %i < %n {
                 %b = addr i8, %p, 8 %x = load %b -> i64
                 %m = icmp eq %x, %i
                 if %m { %v = load %p -> f64 %w = load %t -> f64 %s = fadd %v, %w store %s, %q yield }
                 else { yield }
                 yield
               }
               return }";
        let unit = lowered(text);
        let Some(Symbol::Func(range)) = unit.symbol("f.gr_range") else {
            panic!("it was made");
        };
        let attrs = unit.attrs(unit.functions[range].attrs);
        let sizes: Vec<u64> = (0..8)
            .filter_map(|i| match attrs.param(i, "dereferenceable") {
                Some(AttrValue::Int(bytes)) => Some(*bytes),
                _ => None,
            })
            .collect();
        assert_eq!(sizes.len(), 2, "{attrs:?}");
        assert!(sizes.iter().all(|bytes| *bytes == 16), "{attrs:?}");
        let reads_only = (0..8).any(|i| attrs.param(i, "readonly").is_some());
        assert!(
            !reads_only,
            "the loop may get at it by another pointer: {attrs:?}"
        );
    }
}
