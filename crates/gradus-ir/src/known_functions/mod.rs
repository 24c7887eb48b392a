//! External functions of a unit: recognition by symbol and signature, and statements of the program.
//!
//! [`Unit::known`] looks up a declaration in the table of `externals/`. `user_declared.rs` records statements of the
//! program about functions; `overloads.rs` prints the symbols of overloaded intrinsics.

mod overloads;
mod user_declared;

use crate::externals::{CompilerIntrinsic, MemoryFn, OpenMpFn};
use crate::externals::{
    Effects, ExternalFn, ExternalInfo, INDEX, Shape, TAPE, is_cpp_text_function, system,
};
use crate::{Body, FuncId, Op, Type, TypeId, Unit};

impl Unit {
    /// Returns the external function behind `func`: declared only, with a table name and a matching
    /// signature. Tape-stack functions are recognised with bodies, too ([`crate::externals::MemoryFn::is_tape`]).
    pub fn known(&self, func: FuncId) -> Option<ExternalFn> {
        self.find_known(func).map(|found| found.known)
    }
    /// Returns the external function that a `call` or `invoke` calls directly.
    pub fn known_callee(&self, body: &Body, op: Op) -> Option<ExternalFn> {
        self.known(self.callee(body, op)?)
    }
    /// Returns the OpenMP function that an op calls.
    pub fn openmp_callee(&self, body: &Body, op: Op) -> Option<OpenMpFn> {
        match self.known_callee(body, op)? {
            ExternalFn::OpenMp(function) => Some(function),
            _ => None,
        }
    }
    /// Returns the memory function that an op calls.
    pub fn memory_callee(&self, body: &Body, op: Op) -> Option<MemoryFn> {
        match self.known_callee(body, op)? {
            ExternalFn::Memory(function) => Some(function),
            _ => None,
        }
    }
    /// Returns the marker intrinsic that an op calls.
    pub fn marker_callee(&self, body: &Body, op: Op) -> Option<CompilerIntrinsic> {
        match self.known_callee(body, op)? {
            ExternalFn::Marker(marker) => Some(marker),
            _ => None,
        }
    }
    /// Returns whether an op marks the start or the end of a lifetime.
    pub fn is_lifetime_marker(&self, body: &Body, op: Op) -> bool {
        let marker = self.marker_callee(body, op);
        let ends = [
            CompilerIntrinsic::LifetimeStart,
            CompilerIntrinsic::LifetimeEnd,
        ];
        marker.is_some_and(|marker| ends.contains(&marker))
    }
    /// Returns the effects of the external function behind `func`.
    pub fn known_effects(&self, func: FuncId) -> Option<Effects> {
        self.find_known(func).map(|found| found.effects)
    }
    fn find_known(&self, func: FuncId) -> Option<ExternalInfo> {
        if let Some(stated) = self.user_declared.get(&func) {
            return Some(*stated);
        }
        if self.user_defined.contains(&func) {
            return None;
        }
        let function = &self.functions[func];
        let is_seen = || function.defined && !is_cpp_text_function(&function.name);
        let has_body = function.body.is_some() || is_seen();
        if has_body && !function.name.starts_with(TAPE) {
            return None;
        }
        let found = INDEX.find(&function.name)?;
        let fits = found
            .shape
            .is_none_or(|s| self.matches_signature(s, function.ty));
        fits.then_some(found)
    }
    /// Returns whether a function of the unit may take the address of `errno`.
    pub fn takes_errno_address(&self) -> bool {
        system::ERRNO
            .iter()
            .any(|name| self.function(name).is_some())
    }
    /// Returns whether `func` operates on the tape stack of a derivative.
    pub fn is_tape_function(&self, func: FuncId) -> bool {
        self.functions[func].name.starts_with(TAPE)
            && matches!(self.known(func), Some(ExternalFn::Memory(m)) if m.is_tape())
    }
    fn matches_signature(&self, shape: Shape, ty: TypeId) -> bool {
        let Type::Func { result, params, .. } = self.types.get(ty) else {
            return false;
        };
        params.len() == shape.params.len()
            && self.matches_type_class(shape.result, *result)
            && (shape.params.chars().zip(params)).all(|(c, ty)| self.matches_type_class(c, *ty))
    }
    fn matches_type_class(&self, class: char, ty: TypeId) -> bool {
        match self.types.get(self.types.scalar(ty)) {
            Type::Float(_) => class == 'f',
            Type::Int(_) => class == 'i',
            Type::Ptr(_) => class == 'p',
            Type::Struct { .. } => class == 's',
            Type::Void => class == 'v',
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::externals::{ExternalFn, MathFn};
    use crate::{AttrSet, Unit};

    #[test]
    fn mismatched_signatures_are_unknown() {
        let mut unit = Unit::default();
        let (f64, i64) = (unit.types.f64(), unit.types.int(64));
        let right = unit.types.func(f64, vec![f64]);
        let wrong = unit.types.func(i64, vec![f64, i64]);
        let y1 = unit.declare("y1", right, AttrSet::default());
        assert_eq!(unit.known(y1), Some(ExternalFn::Math(MathFn::Y1)));
        let y0 = unit.declare("y0", wrong, AttrSet::default());
        assert_eq!(unit.known(y0), None);
        unit.functions[y1].defined = true;
        assert_eq!(unit.known(y1), None);
    }
}
