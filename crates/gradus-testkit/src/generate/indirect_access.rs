//! IR programs: loops with indirect loads through an index array. The stores of a loop go to separate
//! memory, to neighbouring memory, or to the loaded array, unknown to the program.

use super::Writer;

/// The number of indices, including the indices of a further iteration.
const INDICES: u64 = 20;

impl Writer<'_> {
    /// Emits the function with the loop, if the program has the loop. Each iteration loads four floats of
    /// `%x`, and stores to `%y` at an unknown location, or changes the index array.
    pub(super) fn index_array_function(&mut self) {
        let Some(number) = self.index_array_loop else {
            // Not an error: the program has no such loop.
            return;
        };
        let tag = self.name_suffix.clone();
        self.line(format!(
            "func @listed{tag}(%n: i64, %list: ptr, %x: ptr, %y: ptr) -> f64 {{\n\
             %trips = lshr %n, 1\n%r = for %i < %trips iter(%sum = 0.25) {{\n\
             %first = shl %i, 2\n%l0 = addr i64, %list, %first"
        ));
        for k in 0..4 {
            if k > 0 {
                self.line(format!("%l{k} = addr i64, %l0, {k}"));
            }
            self.line(format!(
                "%c{k} = load %l{k} -> i64\n%p{k} = addr inbounds f64, %x, %c{k}\n%v{k} = load %p{k} -> f64"
            ));
        }
        self.line("%a = fmul %v0, %v1\n%b = fmul %v2, %v3\n%d = fsub %a, %b\n%s = call @sin(%d)");
        match number % 4 {
            0 => self.line("%to = addr inbounds f64, %y, %i\nstore %s, %to"),
            1 => self.line(
                "%up = fcmp ogt %d, 0.0\nif %up {\n%to = addr inbounds f64, %y, %i\nstore %s, %to\n\
                 yield\n} else {\nyield\n}",
            ),
            2 => self.line("%to = addr inbounds f64, %y, %c3\nstore %s, %to"),
            _ => {
                self.note("list that its loop changes");
                self.line("%other = xor %c1, 7\n%l4 = addr i64, %l0, 4\nstore %other, %l4");
            }
        }
        self.line("%next = fadd %s, %sum\nyield %next\n}\nstore %r, %x\nreturn %r\n}");
    }

    /// Emits the call, with an index array that covers some elements of an array.
    pub(super) fn call_index_array_function(&mut self) {
        let Some(number) = self.index_array_loop else {
            // Not an error: the program has no such loop.
            return;
        };
        self.note("array read through a list");
        let array = match number / 4 % 2 {
            0 => "%x".into(),
            _ => self.local_copy(),
        };
        let count = 2 + number / 8 % 5;
        let first = number / 40 % (9 - count);
        let far = number / 7 % 5;
        let other = match number % 4 {
            2 => array.clone(),
            _ if number / 3 % 4 == 0 => self.local_copy(),
            _ => self.value(format!("addr inbounds f64, {array}, {far}")),
        };
        let list = self.value(format!("alloca [{INDICES} x i64], 1"));
        let k = self.name();
        self.line(format!("for {k} < {INDICES} {{"));
        let steps = self.value(format!("mul {k}, {}", 1 + number % 7));
        let place = self.value(format!("urem {steps}, {count}"));
        let index = self.value(format!("add {place}, {first}"));
        let at = self.value(format!("addr i64, {list}, {k}"));
        self.line(format!("store {index}, {at}\nyield\n}}"));
        let tag = self.name_suffix.clone();
        let value = self.value(format!("call @listed{tag}(%n, {list}, {array}, {other})"));
        self.floats.push(value);
    }
}
