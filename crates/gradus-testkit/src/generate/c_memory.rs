//! Statements of random C programs on memory: arrays, pointers, structures, byte copies.

use super::c::{Array, Writer};

impl Writer<'_> {
    pub fn memory(&mut self) {
        match self.random.below(13) {
            0 => self.local_array(),
            1 => self.array_view(),
            2 | 3 => self.chosen_pointer(),
            4 => self.assign_pointer(),
            5 | 6 => self.copy(),
            7 => self.swap_heap(),
            8 | 9 => self.structure(),
            10 => self.bits(),
            11 => self.rows(),
            _ => self.nodes(),
        }
    }

    fn array(&mut self, name: String, mask: u32, own: bool) {
        self.arrays.push(Array {
            name,
            mask,
            is_whole_object: own,
            variable: false,
            heap: false,
        });
    }

    /// Emits a filled array.
    pub fn local_array(&mut self) {
        self.note("local array");
        let name = self.name("t");
        let value = self.bounded();
        self.line(format!(
            "double {name}[8]; for (int i = 0; i < 8; i++) {name}[i] = 0.1 * i + 0.5 * ({value});"
        ));
        self.array(name, 7, true);
    }

    /// Emits two heap arrays whose pointers may be swapped; at the start of `f` only.
    pub fn heap_arrays(&mut self) {
        self.note("malloc");
        for _ in 0..2 {
            let name = self.name("u");
            self.line(format!(
                "double *{name} = malloc(8 * sizeof(double)); for (int i = 0; i < 8; i++) {name}[i] = 0.5 * x[i] + 0.1 * s;"
            ));
            self.arrays.push(Array {
                name,
                mask: 7,
                is_whole_object: false,
                variable: false,
                heap: true,
            });
        }
    }

    fn swap_heap(&mut self) {
        let heap: Vec<String> = self
            .arrays
            .iter()
            .filter(|a| a.heap)
            .map(|a| a.name.clone())
            .collect();
        let [a, b] = heap.as_slice() else {
            return self.array_view();
        };
        self.note("pointers swapped");
        let t = self.name("p");
        self.line(format!("{{ double *{t} = {a}; {a} = {b}; {b} = {t}; }}"));
    }

    fn whole_array(&mut self) -> Array {
        let full: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| a.mask == 7)
            .cloned()
            .collect();
        self.random.pick(&full).clone()
    }

    /// Emits a pointer into the middle of an array.
    fn array_view(&mut self) {
        self.note("view into an array");
        let (name, of) = (self.name("p"), self.whole_array());
        let offset = self.random.below(5);
        self.line(format!("double *{name} = {} + {offset};", of.name));
        self.array(name, 3, false);
    }

    fn chosen_pointer(&mut self) {
        self.note("pointer chosen by a condition");
        let name = self.name("p");
        let (a, b, condition) = (self.whole_array(), self.whole_array(), self.condition());
        self.line(format!(
            "double *{name} = {condition} ? {} : {};",
            a.name, b.name
        ));
        self.arrays.push(Array {
            name,
            mask: 7,
            is_whole_object: false,
            variable: true,
            heap: false,
        });
    }

    /// Assigns another array to a pointer variable, possibly under a condition. The array must live as long
    /// as the pointer: it is chosen among arrays declared earlier.
    fn assign_pointer(&mut self) {
        let variables: Vec<usize> = (0..self.arrays.len())
            .filter(|i| self.arrays[*i].variable)
            .collect();
        if variables.is_empty() {
            return self.chosen_pointer();
        }
        self.note("pointer set anew");
        let at = *self.random.pick(&variables);
        let older: Vec<String> = self.arrays[..at]
            .iter()
            .filter(|a| a.mask == 7)
            .map(|a| a.name.clone())
            .collect();
        let (other, condition) = (self.random.pick(&older).clone(), self.condition());
        let name = self.arrays[at].name.clone();
        self.line(format!("if ({condition}) {name} = {other};"));
    }

    fn copy(&mut self) {
        let (a, b) = (self.whole_array(), self.whole_array());
        let object =
            |a: &Array| a.is_whole_object || a.heap || a.name == "x" || a.name.starts_with("g_");
        let apart = a.name != b.name
            && (a.is_whole_object || b.is_whole_object)
            && object(&a)
            && object(&b);
        let cells = 1 + self.random.below(8);
        match self.random.below(4) {
            0 => {
                self.note("memset");
                self.line(format!(
                    "memset({}, 0, {} * sizeof(double));",
                    a.name, cells
                ));
            }
            1 => {
                self.note("memmove within an array");
                self.line(format!(
                    "memmove({0} + 1, {0}, 5 * sizeof(double));",
                    a.name
                ));
            }
            _ if apart => {
                self.note("memcpy");
                self.line(format!(
                    "memcpy({}, {}, {} * sizeof(double));",
                    a.name, b.name, cells
                ));
            }
            _ => {
                self.note("memmove");
                self.line(format!(
                    "memmove({}, {}, 8 * sizeof(double));",
                    a.name, b.name
                ));
            }
        }
    }

    fn structure(&mut self) {
        let seed = self.seed;
        let (a, b, k, name) = (self.operand(), self.operand(), self.int(), self.name("q"));
        match self.random.below(5) {
            0 => {
                self.note("structure passed by value");
                self.single = true;
                let value = self.operand();
                self.line(format!(
                    "struct big_{seed} {name} = {{{a}, {{{b}, 0.5}}, {k} & 7, 0.25f, {b}}}; {name}.c = (float)({value}); {name}.b = 0.5 * {name}.c + 0.5 * {name}.a;"
                ));
                self.line(format!("double {name}r = big_use_{seed}({name}, {a});"));
                self.variable(format!("{name}r"));
                self.variable(format!("{name}.a"));
                self.variable(format!("{name}.v[1]"));
            }
            1 => {
                self.note("float and int by value");
                self.single = true;
                self.line(format!("struct mixed_{seed} {name} = {{0.5f * (float)({a}), {k} & 7}}; {name} = mixed_make_{seed}({name}, {b});"));
                self.floats.push(format!("{name}.a"));
            }
            2 => {
                self.note("array of structures");
                self.line(format!("struct pair_{seed} {name}[4]; for (int i = 0; i < 4; i++) {{ {name}[i].a = {a}; {name}[i].k = i; {name}[i].b = 0.5 * x[i]; }}"));
                let j = self.int();
                let i = self.random.below(4);
                self.line(format!("swap_{seed}(&{name}[{i}], &{name}[{j} & 3]);"));
                for field in ["[1].a", "[2].b"] {
                    self.variable(format!("{name}{field}"));
                }
                self.variable(format!("{name}[{j} & 3].a"));
            }
            _ => {
                self.note("structure");
                self.line(format!(
                    "struct pair_{seed} {name} = {{{a}, {k} & 7, 0.5 * {b}}};"
                ));
                for other in self.structs.clone() {
                    if self.chance(2) {
                        self.note("structures swapped");
                        self.line(format!("swap_{seed}(&{name}, &{other});"));
                    }
                }
                self.structs.push(name.clone());
                self.ints.push(format!("{name}.k"));
                self.variable(format!("{name}.a"));
                self.variable(format!("{name}.b"));
            }
        }
    }

    /// Emits floats copied as integers.
    fn bits(&mut self) {
        let (b, v, a) = (self.name("b"), self.name("v"), self.bounded());
        match self.random.below(4) {
            0 => {
                self.note("bits of an array");
                let (from, to) = (self.whole_array(), self.whole_array());
                self.line(format!(
                    "int64_t {b}[8]; memcpy({b}, {}, sizeof {b});",
                    from.name
                ));
                self.line(format!("for (int i = 0; i < 8; i++) {{ int64_t e = {b}[7 - i]; memcpy(&{}[i], &e, 8); }}", to.name));
            }
            1 => {
                self.note("sign bit read");
                self.line(format!("double {v} = {a}; int64_t {b}; memcpy(&{b}, &{v}, 8); if ({b} < 0) {v} = 0.5 * {v} * {v};"));
                self.variable(v);
            }
            2 => {
                self.note("sign bit cleared");
                self.line(format!("double {v} = {a}; uint64_t {b}; memcpy(&{b}, &{v}, 8); {b} &= 0x7fffffffffffffffu; memcpy(&{v}, &{b}, 8);"));
                self.variable(v);
            }
            _ => {
                self.note("bits of a number");
                self.line(format!("double {v}i = {a}, {v}; int64_t {b}; memcpy(&{b}, &{v}i, 8); memcpy(&{v}, &{b}, 8);"));
                self.variable(v);
            }
        }
    }

    /// Emits an array of pointers.
    fn rows(&mut self) {
        self.note("array of pointers");
        let (rows, p) = (self.name("rows"), self.name("p"));
        let (a, b, c, k) = (
            self.whole_array(),
            self.whole_array(),
            self.whole_array(),
            self.int(),
        );
        self.line(format!(
            "double *{rows}[4] = {{{}, {}, {}, {}}};",
            a.name, b.name, c.name, a.name
        ));
        let (i, j) = (self.random.below(4), self.random.below(4));
        let condition = self.condition();
        self.line(format!("if ({condition}) {rows}[{i}] = {rows}[{k} & 3];"));
        self.line(format!("double *{p} = {rows}[{k} & 3];"));
        self.array(format!("{rows}[{j}]"), 7, false);
        self.array(p, 7, false);
    }

    /// Emits linked structures.
    fn nodes(&mut self) {
        self.note("linked structures");
        let seed = self.seed;
        let (nodes, e, sum) = (self.name("nodes"), self.name("e"), self.name("v"));
        let (a, k, x) = (self.bounded(), self.int(), self.whole_array());
        self.line(format!(
            "struct node_{seed} {nodes}[4]; for (int i = 0; i < 4; i++) {{ {nodes}[i].a = 0.5 * {}[i]; {nodes}[i].b = {a}; {nodes}[i].next = i ? &{nodes}[i - 1] : 0; }}",
            x.name
        ));
        self.line(format!(
            "double {sum} = 0.1; for (struct node_{seed} *{e} = &{nodes}[{k} & 3]; {e}; {e} = {e}->next) {{ {sum} = 0.5 * {sum} + 0.4 * {e}->a * {e}->b; {e}->b = {sum}; }}"
        ));
        self.variable(sum);
        self.variable(format!("{nodes}[2].a"));
        self.variable(format!("{nodes}[1].b"));
    }
}
