//! Pointers that a derivative loads from global variables and dereferences in shadow memory.
//!
//! A pointer that the program stored outside of derivatives has no shadow. A derivative must not dereference
//! the null shadow of a non-null pointer: it ends the program with a message.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use gradus_analysis::MemoryOrigin;
use gradus_ir::{Op, OpKind, Value};
use std::collections::HashSet;

impl FactsBuilder<'_> {
    /// Collects the loads whose shadows the derivative tests.
    pub(super) fn find_tested_global_loads(&self, facts: &mut BodyFacts<'_>) {
        let body = facts.body;
        let is_tested = |op: &Op| {
            matches!(body.kind(*op), OpKind::Load(_))
                && self.may_point_to_global(body.operand(*op, 0))
                && self.shadow_is_dereferenced(facts, body.result(*op))
        };
        facts.tested_global_loads = body.walk(body.root()).filter(is_tested).collect();
    }

    /// Returns true if an address may point to a global variable that is not constant.
    fn may_point_to_global(&self, ptr: Value) -> bool {
        let memory = &self.closure.memory;
        let is_variable = |origin: &MemoryOrigin| match origin {
            MemoryOrigin::Global(global) => !self.unit.globals[*global].constant,
            _ => false,
        };
        memory.may_point_into(self.variant.func, ptr, |class| {
            memory.get(class).origins.iter().any(is_variable)
        })
    }

    /// Returns true if the shadow of `pointer`, or of a pointer computed from it, is accessed or escapes.
    fn shadow_is_dereferenced(&self, facts: &BodyFacts<'_>, pointer: Value) -> bool {
        let body = facts.body;
        if !self.unit.types.is_ptr(body.ty(pointer)) || !facts.has_shadow(pointer) {
            return false;
        }
        let (mut work, mut seen) = (vec![pointer], HashSet::new());
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            for user in body.uses(value) {
                let results = body.results(user.op);
                let carries = |value: &Value| facts.has_shadow(*value) || facts.is_active(*value);
                match body.kind(user.op) {
                    OpKind::Load(_) if results.iter().any(carries) => return true,
                    OpKind::Store(_) if user.index == 0 => return true,
                    OpKind::Store(_) => {
                        let stored = body.operand(user.op, 0);
                        let is_number = self.unit.types.int_bits(body.ty(stored)).is_some();
                        if !is_number
                            || carries(&stored)
                            || facts.float_bit_ranges(stored).is_some()
                        {
                            return true;
                        }
                    }
                    OpKind::Load(_) | OpKind::ICmp(_) => {}
                    OpKind::Call(_) if self.is_free(body, user.op) => {}
                    OpKind::Addr { .. } | OpKind::Select | OpKind::Freeze | OpKind::Cast(_) => {
                        work.extend(results.iter().filter(|value| carries(value)));
                    }
                    // The value is a result of the enclosing op, or escapes.
                    _ => return true,
                }
            }
        }
        false
    }
}

impl BodyFacts<'_> {
    /// Returns true if the derivative tests the shadow of `load`: a global variable may hold a pointer
    /// without a shadow.
    pub fn may_lack_shadow(&self, load: Op) -> bool {
        self.tested_global_loads.contains(&load)
    }
}
