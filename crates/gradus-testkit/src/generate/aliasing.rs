//! Aliasing accesses in IR programs, not obvious from the code: cases for alias analysis. Each loads a
//! float whose square is required in the reverse pass, and overwrites the float.

use super::Writer;

impl Writer<'_> {
    /// Emits the function called by these statements.
    pub(super) fn aliasing_function(&mut self) {
        let tag = self.name_suffix.clone();
        self.line(format!(
            "func @meet{tag}(%x: ptr, %y: ptr, %s: f64) -> f64 {{\n\
             %r = for %i < 4 iter(%a = %s) {{\n%p = addr inbounds f64, %x, %i\n\
             %v = load %p -> f64\n%w = fmul %v, %v\n%b = fmul %w, %a\n%c = call @sin(%b)\n\
             %q = addr inbounds f64, %y, %i\nstore %c, %q\nyield %c\n}}\nreturn %r\n}}"
        ));
    }

    pub(super) fn aliasing_statement(&mut self) {
        match self.random.below(7) {
            0 => self.overwritten_by_next_iteration(),
            1 => self.aliasing_arguments(),
            2 => self.array_through_global(),
            3 => self.vector_store_over_scalar(),
            4 => self.overlapping_memmove(),
            5 => self.array_read_in_parts(),
            _ => self.maybe_inactive_array(),
        }
    }

    fn any_array(&mut self) -> String {
        self.random.pick(&self.arrays).clone()
    }

    /// Returns a bounded number computed from the square of a cell.
    fn square_of(&mut self, cell: &str) -> String {
        let old = self.value(format!("load {cell} -> f64"));
        let square = self.value(format!("fmul {old}, {old}"));
        let factor = self.float();
        let product = self.value(format!("fmul {square}, {factor}"));
        self.bounded(&product)
    }

    /// Emits a loop whose iterations overwrite a float read by the previous one, at a higher index.
    fn overwritten_by_next_iteration(&mut self) {
        self.note("read before the next iteration's write");
        let (array, start) = (self.any_array(), self.float());
        let (result, i, acc) = (self.name(), self.name(), self.name());
        self.line(format!("{result} = for {i} < 3 iter({acc} = {start}) {{"));
        let mark = self.visible_counts();
        self.floats.push(acc.clone());
        let parity = self.value(format!("and {i}, 1"));
        let here = self.value(format!("addr inbounds f64, {array}, {parity}"));
        let new = self.bounded(&acc);
        self.line(format!("store {new}, {here}"));
        let other = self.value(format!("xor {parity}, 1"));
        let there = self.value(format!("addr inbounds f64, {array}, {other}"));
        let read = self.square_of(&there);
        let next = self.value(format!("fadd {read}, {new}"));
        self.line(format!("yield {next}\n}}"));
        self.restore_visible(mark);
        self.floats.push(result);
    }

    /// Emits a call that reads through an argument and overwrites through the other, for equal arrays.
    fn aliasing_arguments(&mut self) {
        self.note("arguments that meet in a cell");
        let (a, s, tag) = (self.any_array(), self.float(), self.name_suffix.clone());
        let b = match self.random.below(3) {
            0 => self.any_array(),
            _ => a.clone(),
        };
        let value = self.value(format!("call @meet{tag}({a}, {b}, {s})"));
        self.floats.push(value);
    }

    /// Emits a local array, or the function's first array, whose address is temporarily in a global, and
    /// which is written through the global.
    fn array_through_global(&mut self) {
        let array = match self.random.below(2) {
            0 => {
                self.note("local array behind a global");
                self.local_array();
                self.arrays[self.arrays.len() - 1].clone()
            }
            _ => {
                self.note("array behind a global");
                self.arrays[0].clone()
            }
        };
        let (tag, start) = (self.name_suffix.clone(), self.float());
        let before = self.value(format!("load @slot{tag} -> ptr"));
        self.line(format!("store {array}, @slot{tag}"));
        let (result, i, acc) = (self.name(), self.name(), self.name());
        self.line(format!("{result} = for {i} < 3 iter({acc} = {start}) {{"));
        let cell = self.value(format!("addr inbounds f64, {array}, {i}"));
        let new = self.square_of(&cell);
        let address = self.value(format!("load @slot{tag} -> ptr"));
        let same = self.value(format!("addr inbounds f64, {address}, {i}"));
        let next = self.value(format!("fadd {new}, {acc}"));
        self.line(format!("store {new}, {same}\nyield {next}\n}}"));
        self.line(format!("store {before}, @slot{tag}"));
        self.floats.push(result);
    }

    /// Emits a store of two lanes over a float.
    fn vector_store_over_scalar(&mut self) {
        self.note("pair stored over one number");
        let (array, start, lane) = (self.any_array(), self.float(), self.random.below(2));
        let (result, i, acc) = (self.name(), self.name(), self.name());
        self.line(format!("{result} = for {i} < 3 iter({acc} = {start}) {{"));
        let first = self.value(format!("shl {i}, 1"));
        let pair = self.value(format!("addr inbounds f64, {array}, {first}"));
        let cell = self.value(format!("addr inbounds f64, {pair}, {lane}"));
        let new = self.square_of(&cell);
        let half = self.value(format!("insertelement <2 x f64> poison, {new}, 1"));
        let both = self.value(format!("insertelement {half}, 0.25, 0"));
        let next = self.value(format!("fadd {new}, {acc}"));
        self.line(format!("store align 8 {both}, {pair}\nyield {next}\n}}"));
        self.floats.push(result);
    }

    /// Emits a memmove down within an array, overlapping its source.
    fn overlapping_memmove(&mut self) {
        self.note("numbers moved down onto themselves");
        let array = self.any_array();
        let from = self.value(format!("addr inbounds f64, {array}, 1"));
        self.line(format!(
            "call @llvm.memmove.p0.p0.i64({array}, {from}, 48, false)"
        ));
        for index in [0, 3] {
            let cell = self.value(format!("addr inbounds f64, {array}, {index}"));
            let value = self.square_of(&cell);
            self.floats.push(value);
        }
    }

    /// Emits two loops that read the parts of an array, possibly empty, before the whole array is
    /// overwritten.
    fn array_read_in_parts(&mut self) {
        self.note("two parts of an array");
        let (array, start, k) = (self.any_array(), self.float(), self.int());
        let third = self.value(format!("urem {k}, 3"));
        let cut = self.value(format!("shl {third}, 2"));
        let rest = self.value(format!("sub 8, {cut}"));
        let mut sum = start;
        for (first, trips) in [("0", &cut), (cut.as_str(), &rest)] {
            let (result, i, acc) = (self.name(), self.name(), self.name());
            self.line(format!(
                "{result} = for {i} < {trips} iter({acc} = {sum}) {{"
            ));
            let at = self.value(format!("add {first}, {i}"));
            let cell = self.value(format!("addr inbounds f64, {array}, {at}"));
            let part = self.square_of(&cell);
            let next = self.value(format!("fadd {part}, {acc}"));
            self.line(format!("yield {next}\n}}"));
            sum = result;
        }
        let new = self.bounded(&sum);
        let (j, cell) = (self.name(), self.name());
        self.line(format!(
            "for {j} < 8 {{\n{cell} = addr inbounds f64, {array}, {j}\nstore {new}, {cell}\nyield\n}}"
        ));
        self.floats.push(sum);
    }

    /// Emits a load from an active or an inactive array, selected at run time.
    fn maybe_inactive_array(&mut self) {
        self.note("array that may be inactive");
        let (condition, array, tag) =
            (self.condition(), self.any_array(), self.name_suffix.clone());
        let chosen = self.value(format!("select {condition}, {array}, @weights{tag}"));
        let index = self.int();
        let index = self.value(format!("and {index}, 7"));
        let cell = self.value(format!("addr inbounds f64, {chosen}, {index}"));
        let value = self.square_of(&cell);
        self.floats.push(value);
    }
}
