//! Variants of core routines of a library, by the rules in the library's semantics
//! (`crates/gradus-llvm/semantics/blas/rules.h`).
//!
//! A core routine returns nothing; numbers are parameters, arrays are pointers. The rules take the routine's
//! parameters with the following changes:
//!
//! | rule | after a pointer | after a number | last parameters |
//! |---|---|---|---|
//! | tangent | shadow | tangent | active |
//! | augmented | | | active, overwritten |
//! | reverse | shadow | address of the adjoint | tape, active, overwritten, shared |
//!
//! Inactive parameters have a null shadow, a zero tangent or a null address. Forward mode calls the tangent rule
//! once per tangent before the primal. The augmented rule runs the primal. The reverse rule runs once per
//! cotangent.

use super::calls::frame_memory;
use gradus_ad::{
    ArgActivity, Mode, ResultActivity, SignaturePart, SignatureParts, Tangents, TapeOwner, Variant,
    begin_variant, carries_float, end_variant,
};
use gradus_ir::{Builder, FuncId, IntPredicate, TypeId, Unit, Value};
use std::collections::HashMap;

/// The rules of a core routine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreRules {
    /// Updates the tangents of the outputs.
    pub tangent: FuncId,
    /// Runs the primal, and returns the tape.
    pub augmented: FuncId,
    /// Updates the adjoints.
    pub reverse: FuncId,
}

/// The rules of all core routines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LibraryRules {
    cores: HashMap<FuncId, CoreRules>,
    /// Declared functions with a body during differentiation.
    pub bodies: Vec<FuncId>,
}

impl LibraryRules {
    /// Adds the rules of a core routine.
    pub(crate) fn add(&mut self, core: FuncId, rules: CoreRules) {
        self.cores.insert(core, rules);
    }

    /// Emits a variant of a core routine. Returns `None` for other functions and for variants that the rules do not
    /// cover: the derivative of the routine's body is then used.
    pub(crate) fn make(&self, unit: &mut Unit, variant: &Variant) -> Option<FuncId> {
        let rules = *self.cores.get(&variant.func)?;
        let is_covered = !variant.strong_zero
            && variant.tangents == Tangents::Numbers
            && variant.result == ResultActivity::Const
            && variant.tape == TapeOwner::Derivative;
        if !is_covered {
            return None;
        }
        let params = unit.param_types(unit.functions[variant.func].ty).to_vec();
        let signature = variant.signature(unit);
        let (mut body, mut parts) = begin_variant(&signature);
        let emitter = RuleEmitter {
            variant,
            rules,
            params,
        };
        let mut build = Builder::new(unit, &mut body);
        match variant.mode {
            Mode::Forward => emitter.forward(&mut build, &parts),
            Mode::Augmented => {
                let tape = emitter.augmented(&mut build, &parts);
                parts.insert(SignaturePart::Tape, tape);
            }
            Mode::Reverse => emitter.reverse(&mut build, &mut parts),
            Mode::Combined => {
                let tape = emitter.augmented(&mut build, &parts);
                parts.insert(SignaturePart::Tape, tape);
                emitter.reverse(&mut build, &mut parts);
            }
        }
        Some(end_variant(unit, variant, &signature, body, &parts))
    }
}

/// The emitter of a variant.
struct RuleEmitter<'a> {
    variant: &'a Variant,
    rules: CoreRules,
    /// The parameters of the core routine.
    params: Vec<TypeId>,
}

impl RuleEmitter<'_> {
    fn primal(&self, parts: &SignatureParts, number: usize) -> Value {
        parts[&SignaturePart::Primal(number)]
    }

    /// Returns the primal's arguments.
    fn primals(&self, parts: &SignatureParts) -> Vec<Value> {
        (0..self.params.len())
            .map(|number| self.primal(parts, number))
            .collect()
    }

    /// Returns the set of parameters for which `holds` is true, as a number.
    fn set(&self, build: &mut Builder<'_>, holds: impl Fn(usize) -> bool) -> Value {
        let bits = (0..self.params.len())
            .filter(|number| holds(*number))
            .fold(0i64, |bits, number| bits | 1 << number);
        self.int(build, bits)
    }

    fn int(&self, build: &mut Builder<'_>, value: i64) -> Value {
        let ty = build.unit.types.int(32);
        build.int(ty, i128::from(value))
    }

    fn is_active(&self, number: usize) -> bool {
        self.variant.args[number] != ArgActivity::Const
    }

    fn active(&self, build: &mut Builder<'_>) -> Value {
        self.set(build, |number| self.is_active(number))
    }

    /// Returns the set of parameters whose memory may be overwritten before the reverse pass. The reverse pass of a
    /// combined derivative follows at once.
    fn overwritten(&self, build: &mut Builder<'_>) -> Value {
        let variant = self.variant;
        let split = variant.mode != Mode::Combined;
        self.set(build, |number| {
            split && variant.overwritten.get(number).copied().unwrap_or(true)
        })
    }

    /// Returns the shadow of a pointer for a lane: null if the pointer is inactive.
    fn shadow(
        &self,
        build: &mut Builder<'_>,
        parts: &SignatureParts,
        number: usize,
        lane: u32,
    ) -> Value {
        let null = build.zero(self.params[number]);
        let Some(&shadow) = parts.get(&SignaturePart::Shadow(number, lane)) else {
            return null;
        };
        if self.variant.args[number] != ArgActivity::MaybeDup {
            return shadow;
        }
        let is_inactive = build.icmp(IntPredicate::Eq, shadow, self.primal(parts, number));
        build.select(is_inactive, null, shadow)
    }

    fn forward(&self, build: &mut Builder<'_>, parts: &SignatureParts) {
        for lane in 0..self.variant.width {
            let mut args = Vec::new();
            for (number, &ty) in self.params.iter().enumerate() {
                args.push(self.primal(parts, number));
                if build.unit.types.is_ptr(ty) {
                    args.push(self.shadow(build, parts, number, lane));
                } else if carries_float(build.unit, ty) {
                    let tangent = parts.get(&SignaturePart::Shadow(number, lane)).copied();
                    args.push(tangent.unwrap_or_else(|| build.zero(ty)));
                }
            }
            args.push(self.active(build));
            build.call(self.rules.tangent, &args);
        }
        let args = self.primals(parts);
        build.call(self.variant.func, &args);
    }

    /// Calls the augmented primal and returns the tape.
    fn augmented(&self, build: &mut Builder<'_>, parts: &SignatureParts) -> Value {
        let mut args = self.primals(parts);
        args.push(self.active(build));
        args.push(self.overwritten(build));
        let call = build.call(self.rules.augmented, &args);
        build.body.result(call)
    }

    fn reverse(&self, build: &mut Builder<'_>, parts: &mut SignatureParts) {
        let tape = parts[&SignaturePart::Tape];
        for lane in 0..self.variant.width {
            let mut args = Vec::new();
            let mut adjoints = Vec::new();
            for (number, ty) in self.params.clone().into_iter().enumerate() {
                args.push(self.primal(parts, number));
                if build.unit.types.is_ptr(ty) {
                    args.push(self.shadow(build, parts, number, lane));
                } else if carries_float(build.unit, ty) {
                    if self.is_active(number) {
                        let place = frame_memory(build, &[ty]);
                        let zero = build.zero(ty);
                        build.store(zero, place);
                        adjoints.push((number, ty, place));
                        args.push(place);
                    } else {
                        let ptr = build.unit.types.ptr();
                        args.push(build.zero(ptr));
                    }
                }
            }
            args.push(tape);
            args.push(self.active(build));
            args.push(self.overwritten(build));
            args.push(self.int(build, i64::from(self.variant.concurrent)));
            build.call(self.rules.reverse, &args);
            for (number, ty, place) in adjoints {
                let adjoint = build.load(ty, place);
                parts.insert(SignaturePart::Adjoint(number, lane), adjoint);
            }
        }
        let free = gradus_edit::declare_free(build.unit);
        build.call(free, &[tape]);
    }
}
