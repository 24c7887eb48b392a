//! Effects of functions without a body, from host attributes and the table of known functions.
//!
//! Attributes only refine: an effect remains possible unless an attribute excludes it. Numbers use the
//! encoding of LLVM 22: `memory` has two bits (read, write) per location, `captures` four bits for the
//! result below four bits for all other captures.

use crate::memory::effects::{AccessSummary, Extent, FunctionEffects, ParamEffects};
use gradus_ir::externals::{self, ExternalFn, MemoryFn};
use gradus_ir::{AttrSet, AttrValue, AttrsId, FactsVersion, FuncId, TypeId, Unit};

/// Bits of `captures` that capture more than the address.
const PROVENANCE: u64 = 0b1100;

/// Everything that [`outside_function`] reads.
#[derive(Clone, Debug)]
pub(crate) struct ExternalState {
    name: String,
    ty: TypeId,
    attrs: AttrsId,
    defined: bool,
    has_body: bool,
    facts: FactsVersion,
}

impl ExternalState {
    /// Returns the present state of a function.
    pub fn of(unit: &Unit, func: FuncId) -> ExternalState {
        let function = &unit.functions[func];
        ExternalState {
            name: function.name.clone(),
            ty: function.ty,
            attrs: function.attrs,
            defined: function.defined,
            has_body: function.body.is_some(),
            facts: unit.facts_version(),
        }
    }
    /// Returns true if the function has this state. Compares without a copy of the name.
    pub fn holds(&self, unit: &Unit, func: FuncId) -> bool {
        let function = &unit.functions[func];
        self.attrs == function.attrs
            && self.ty == function.ty
            && self.defined == function.defined
            && self.has_body == function.body.is_some()
            && self.facts == unit.facts_version()
            && self.name == function.name
    }
}

/// Returns the effects of a function without a body in the unit.
pub(crate) fn outside_function(unit: &Unit, func: FuncId) -> FunctionEffects {
    let params = unit.param_types(unit.functions[func].ty).len();
    let mut found = match (unit.known(func), unit.known_effects(func)) {
        (Some(id), Some(effects)) => from_table(id, effects, params),
        _ => FunctionEffects::unknown(),
    };
    let attrs = unit.attrs(unit.functions[func].attrs);
    match unit.functions[func].body {
        Some(_) => refine(&mut found, attrs),
        None => refine_external(&mut found, attrs),
    }
    found
}

/// Refines the effects of a function without a body, by [`refine`]. A function that accesses argument
/// memory alone, or none, is assumed to acquire no lock there unless stated.
pub(crate) fn refine_external(found: &mut FunctionEffects, attrs: &AttrSet) {
    refine(found, attrs);
    found.synchronizes &= found.reachable.writes;
}

/// Converts a row of the table of known functions.
fn from_table(id: ExternalFn, row: externals::Effects, params: usize) -> FunctionEffects {
    let mut found = FunctionEffects {
        reachable: AccessSummary {
            reads: row.reads.any,
            writes: row.writes.any,
        },
        errno: AccessSummary {
            reads: row.reads.errno,
            writes: row.writes.errno,
        },
        inaccessible: AccessSummary {
            reads: row.reads.inaccessible,
            writes: row.writes.inaccessible,
        },
        frees_other: row.has_callbacks,
        returns_fresh: row.allocates,
        fresh_holds_pointers: matches!(
            id,
            ExternalFn::Memory(MemoryFn::Realloc | MemoryFn::RustRealloc)
        ),
        returns_other: !row.allocates && row.returns_argument.is_none(),
        may_throw: row.may_throw,
        may_not_return: !row.always_returns,
        calls_unknown: row.has_callbacks,
        ..FunctionEffects::default()
    };
    if row.has_callbacks {
        return FunctionEffects {
            may_throw: row.may_throw,
            ..FunctionEffects::unknown()
        };
    }
    for index in 0..params.max(16) {
        let frees = row.frees.is_some_and(|i| usize::from(i) == index);
        *found.param_mut(index) = ParamEffects {
            reads: Extent::if_any(row.reads.argument(index)),
            writes: Extent::if_any(row.writes.argument(index) && !frees),
            frees,
            captures: index >= 16 || row.captures >> index & 1 == 1,
            returned: row
                .returns_argument
                .is_some_and(|i| usize::from(i) == index),
        };
    }
    found.variadic = ParamEffects {
        reads: Extent::if_any(row.reads.any || row.reads.arguments == u16::MAX),
        writes: Extent::if_any(row.writes.any || row.writes.arguments == u16::MAX),
        captures: row.captures == u16::MAX,
        ..ParamEffects::default()
    };
    found
}

/// Removes the effects that attributes exclude.
pub(crate) fn refine(found: &mut FunctionEffects, attrs: &AttrSet) {
    if attrs.function("nounwind").is_some() {
        found.may_throw = false;
    }
    if attrs.function("willreturn").is_some() {
        found.may_not_return = false;
    }
    if attrs.function("noreturn").is_some() {
        found.may_not_return = true;
    }
    if attrs.function("nosync").is_some() {
        found.synchronizes = false;
    }
    if attrs.function("nocallback").is_some() {
        found.calls_unknown = false;
    }
    if attrs.result("noalias").is_some() && found.returns_other {
        found.returns_fresh = true;
        found.returns_other = false;
        found.params.iter_mut().for_each(|p| p.returned = false);
        found.variadic.returned = false;
    }
    for (index, list) in attrs.params.iter().enumerate() {
        if !list.is_empty() {
            refine_param(found.param_mut(index), attrs, index);
        }
    }
    if let Some(AttrValue::Int(bits)) = attrs.function("memory") {
        refine_memory(found, *bits);
    }
    // The call itself reads the whole `byval` copy, regardless of the function's own accesses.
    for index in 0..attrs.params.len() {
        if attrs.param(index, "byval").is_some() {
            found.param_mut(index).reads = Extent::Object;
        }
    }
    if attrs.function("nofree").is_some() {
        found.frees_other = false;
        found.params.iter_mut().for_each(|p| p.frees = false);
        found.variadic.frees = false;
    }
}

fn refine_param(param: &mut ParamEffects, attrs: &AttrSet, index: usize) {
    let has = |name| attrs.param(index, name).is_some();
    let by_value = has("byval");
    if has("readonly") || has("readnone") || by_value {
        param.writes = Extent::Nothing;
        param.frees = false;
    }
    if has("writeonly") || has("readnone") {
        param.reads = Extent::Nothing;
    }
    if has("nofree") {
        param.frees = false;
    }
    match attrs.param(index, "captures") {
        Some(AttrValue::Int(bits)) => {
            let (result, elsewhere) = (bits & 0xf, bits >> 4 & 0xf);
            param.captures &= elsewhere & PROVENANCE != 0;
            param.returned &= result & PROVENANCE != 0;
        }
        _ if has("nocapture") => {
            param.captures = false;
            param.returned = false;
        }
        _ => {}
    }
    if has("returned") {
        param.returned = true;
    }
}

/// Applies `memory(…)`: two bits each for arguments, inaccessible memory, errno, and all other memory.
fn refine_memory(found: &mut FunctionEffects, bits: u64) {
    let touch = |location: u32| {
        let two = bits >> (2 * location);
        AccessSummary {
            reads: two & 1 != 0,
            writes: two & 2 != 0,
        }
    };
    let (arguments, inaccessible, errno, other) = (touch(0), touch(1), touch(2), touch(3));
    found.inaccessible = found.inaccessible.and(inaccessible);
    found.errno = found.errno.and(errno);
    found.reachable = found.reachable.and(other);
    found.frees_other &= other.writes;
    for touch in found.globals.values_mut() {
        *touch = touch.and(other);
    }
    found
        .globals
        .retain(|_, touch| *touch != AccessSummary::NONE);
    let limit = |param: &mut ParamEffects| {
        if !arguments.reads {
            param.reads = Extent::Nothing;
        }
        if !arguments.writes {
            param.writes = Extent::Nothing;
            param.frees = false;
        }
    };
    found.params.iter_mut().for_each(limit);
    limit(&mut found.variadic);
}
