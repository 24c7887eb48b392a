//! Outlining: the region of a parallel op becomes a function.

use crate::lower::Lowering;
use crate::opt::large_frames;
use gradus_ir::{Body, Builder, FuncId, Linkage, TypeId, Value};

impl Lowering<'_> {
    /// Adds a function next to the lowered function; `fill` emits the body.
    pub(crate) fn outline(
        &mut self,
        suffix: &str,
        result: Option<TypeId>,
        params: &[TypeId],
        fill: impl FnOnce(&mut Builder<'_>),
    ) -> FuncId {
        let parent = &self.unit.functions[self.func];
        // All functions outlined from one function share its name.
        let stem = parent
            .name
            .split(".gr_")
            .next()
            .unwrap_or_default()
            .to_string();
        let origin = parent
            .derived_from
            .filter(|_| parent.name.contains(".gr_"))
            .unwrap_or(self.func);
        let span = parent.span.clone();
        let name = self.unit.fresh_name(&format!("{stem}.gr_{suffix}"));
        let result = result.unwrap_or_else(|| self.unit.types.void());
        let ty = self.unit.types.func(result, params.to_vec());
        let mut body = Body::new(params);
        fill(&mut Builder::new(self.unit, &mut body));
        large_frames::drop_foreign_lifetimes(self.unit, &mut body);
        let func = self.unit.define(name, ty, Linkage::Internal, body);
        let function = &mut self.unit.functions[func];
        function.derived_from = Some(origin);
        function.span = span;
        self.made.push(func);
        func
    }

    /// Returns the types of `values`.
    pub(crate) fn types(body: &Body, values: &[Value]) -> Vec<TypeId> {
        values.iter().map(|v| body.ty(*v)).collect()
    }
}
