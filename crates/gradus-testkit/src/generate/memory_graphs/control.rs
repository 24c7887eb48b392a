//! Memory programs: merges, loops and calls.

use super::shapes::{Field, Pointee};
use super::{Graph, Helper, Ty};

impl Graph<'_> {
    /// Emits a choice between two values of one type.
    pub(super) fn merge(&mut self, depth: u32) {
        let ty = self.any_type();
        let first = self.find(ty, 9);
        let second = self.find(ty, 9);
        let level = first.level.max(second.level);
        let int = self.int();
        let odd = self.value(format!("icmp ne {int}, 0"));
        self.note("pointers merged");
        let name = match self.random.below(4) {
            0 | 1 => self.value(format!("select {odd}, {}, {}", first.name, second.name)),
            2 => {
                let name = self.name();
                let text = ty.text();
                self.line(format!("{name} = if {odd} -> {text} {{"));
                let mark = self.values.len();
                self.block(depth);
                let own = self.find(ty, level);
                self.line(format!("yield {}\n}} else {{", own.name));
                self.values.truncate(mark);
                self.block(depth);
                let own = self.find(ty, level);
                self.line(format!("yield {}\n}}", own.name));
                self.values.truncate(mark);
                name
            }
            _ => {
                let name = self.name();
                let text = ty.text();
                self.line(format!(
                    "{name} = switch {int} -> {text} case 0 {{\nyield {}\n}} default {{\nyield {}\n}}",
                    first.name, second.name
                ));
                name
            }
        };
        self.push(name, ty, level);
    }

    /// Emits statements under a condition.
    pub(super) fn branch(&mut self, depth: u32) {
        let int = self.int();
        let odd = self.value(format!("icmp ne {int}, 0"));
        self.line(format!("if {odd} {{"));
        let mark = self.values.len();
        self.block(depth);
        self.values.truncate(mark);
        self.line("yield\n} else {");
        self.block(depth);
        self.values.truncate(mark);
        self.line("yield\n}");
    }

    /// Emits a loop that carries pointers: exchanged, moved along a list, or replaced.
    pub(super) fn carried(&mut self, depth: u32) {
        let ty = self.any_type();
        let (first, second) = (self.find(ty, 9), self.find(ty, 9));
        let level = first.level.max(second.level);
        self.note("loop with carried pointers");
        let names: Vec<String> = (0..5).map(|_| self.name()).collect();
        let [a, b, p, q, i] = names.as_slice() else {
            unreachable!("as many names as were made");
        };
        let trips = match self.random.below(3) {
            0 => self.int(),
            _ => format!("{}", 1 + self.random.below(4)),
        };
        self.line(format!(
            "{a}, {b} = for {i} < {trips} iter({p} = {}, {q} = {}) {{",
            first.name, second.name
        ));
        let mark = self.values.len();
        self.push(p.clone(), ty, level);
        self.push(q.clone(), ty, level);
        self.block(depth);
        let next = match ty {
            Ty::Object(shape) => self.next_of(p, shape, level),
            _ => self.find(ty, level).name,
        };
        let other = match self.random.below(3) {
            0 => p.clone(),
            1 => q.clone(),
            _ => self.find(ty, level).name,
        };
        self.line(format!("yield {next}, {other}\n}}"));
        self.values.truncate(mark);
        self.push(a.clone(), ty, level);
        self.push(b.clone(), ty, level);
    }

    /// Returns the next structure of a list, if the structure has such a member.
    fn next_of(&mut self, at: &str, shape: usize, level: u8) -> String {
        let own = self.shapes[shape].fields.clone();
        let leads_on = |field: &Field| matches!(field, Field::Link(to) | Field::Pointer(Pointee::Object(to)) if *to == shape);
        let Some(field) = own.iter().position(leads_on) else {
            // Not an error: the structure is no node of a list.
            return self.find(Ty::Object(shape), level).name;
        };
        self.note("walk along a list");
        let place = self.member_address(at, shape, field);
        let next = self.load_pointer(&place, Pointee::Object(shape));
        match own[field] {
            Field::Link(_) => self.not_null(&next, shape),
            _ => next,
        }
    }

    /// Emits a call of a function with a body.
    pub(super) fn call_helper(&mut self) {
        let helpers = self.helpers.clone();
        if helpers.is_empty() {
            return;
        }
        let helper = self.random.pick(&helpers).clone();
        let depth = format!("{}", self.random.below(3));
        self.call(&helper, &depth);
    }

    /// Emits a call. The first argument bounds the recursion.
    pub(super) fn call(&mut self, helper: &Helper, depth: &str) {
        let level = match helper.keeps_nothing {
            true => *self.random.pick(&[0, self.stack_level]),
            false => 0,
        };
        let mut args = vec![depth.to_string()];
        for (index, ty) in helper.params.iter().enumerate() {
            let is_null = helper.nullable == Some(index) && self.random.below(3) == 0;
            args.push(match is_null {
                true => "ptr null".into(),
                false => self.find_at(*ty, level).name,
            });
        }
        let args = args.join(", ");
        match helper.result {
            None => self.line(format!("call @{}({args})", helper.name)),
            Some(ty) => {
                let result = self.value(format!("call @{}({args})", helper.name));
                self.push(result, ty, level);
            }
        }
    }

    /// Emits a call of a callback, from a member, a table or a name.
    pub(super) fn call_code(&mut self) {
        self.note("callback");
        let code = self.find(Ty::Code, 9);
        let (first, second) = self.code;
        let a = self.find_at(Ty::Object(first), 0);
        let b = self.find_at(Ty::Object(second), 0);
        let call = format!(
            "call {}({}, {}) : fn(ptr, ptr) -> ptr",
            code.name, a.name, b.name
        );
        if !self.is_callback {
            let name = self.value(call);
            self.push(name, Ty::Object(first), 0);
            return;
        }
        self.note("recursion through callbacks");
        let prefix = self.prefix;
        let left = self.value(format!("load @{prefix}depth -> i64"));
        let fewer = self.value(format!("sub {left}, 1"));
        let again = self.value(format!("icmp sgt {left}, 0"));
        let (found, result) = (self.name(), self.name());
        self.line(format!(
            "{found} = if {again} -> ptr {{\nstore {fewer}, @{prefix}depth\n{result} = {call}\n\
             yield {result}\n}} else {{\nyield {}\n}}",
            a.name
        ));
        self.push(found, Ty::Object(first), 0);
    }

    /// Emits a call of unknown code, which may keep its arguments.
    pub(super) fn call_unknown(&mut self) {
        let unknown = self.unknown.clone();
        if unknown.is_empty() {
            return;
        }
        self.note("unknown function");
        let helper = self.random.pick(&unknown).clone();
        self.call(&helper, "0");
    }

    /// Emits a recursive call under the bound.
    pub(super) fn recurse(&mut self, own: &Helper) {
        self.note("recursion");
        let more = self.value("icmp sgt %d, 0");
        self.line(format!("if {more} {{"));
        let mark = self.values.len();
        let fewer = self.value("sub %d, 1");
        let levels: Vec<_> = own.params.clone();
        let mut args = vec![fewer];
        for ty in levels {
            args.push(self.find_at(ty, self.param_level).name);
        }
        let args = args.join(", ");
        match own.result {
            None => self.line(format!("call @{}({args})", own.name)),
            Some(ty) => {
                let result = self.value(format!("call @{}({args})", own.name));
                self.push(result, ty, self.param_level);
                self.statement(0);
            }
        }
        self.values.truncate(mark);
        self.line("yield\n} else {\nyield\n}");
    }
}
