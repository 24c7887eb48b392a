//! Memory programs: indices, addresses in integers, differences and copies.

use super::shapes::{Field, Pointee, type_text};
use super::{Graph, Ty, Val};

impl Graph<'_> {
    /// Returns an index below `count`, which is 2 or 4.
    pub(super) fn index(&mut self, count: u64) -> String {
        let int = self.int();
        if count == 2 {
            return match self.random.below(4) {
                0 => format!("{}", self.random.below(2)),
                1 => self.value(format!("and {int}, 1")),
                2 => self.value(format!("xor {int}, 1")),
                _ => int,
            };
        }
        match self.random.below(5) {
            0 => format!("{}", self.random.below(4)),
            1 => self.value(format!("shl nsw {int}, 1")),
            2 => {
                let twice = self.value(format!("shl {int}, 1"));
                self.value(format!("or disjoint {twice}, 1"))
            }
            3 => {
                let other = self.int();
                let sum = self.value(format!("add nsw {int}, {other}"));
                self.value(format!("add nsw {sum}, 1"))
            }
            _ => self.value(format!("and {int}, 3")),
        }
    }

    /// Returns the address of an element of a table of pointers.
    pub(super) fn element_of_row(&mut self, row: &str, count: u64) -> String {
        let index = self.index(count);
        self.element(row, "ptr", 8, &index)
    }

    /// Returns the address of an element of an array of structures.
    pub(super) fn element_of_array(&mut self, array: &str, shape: usize, count: u64) -> String {
        let index = self.index(count);
        let ty = type_text(&self.shapes, shape);
        self.element(array, &ty, self.shapes[shape].size(), &index)
    }

    /// Returns the address of an element, by one of many computations.
    fn element(&mut self, base: &str, ty: &str, size: u64, index: &str) -> String {
        let flag = *self
            .random
            .pick(&["", "inbounds ", "nuw ", "inbounds nuw "]);
        match self.random.below(9) {
            0 => {
                self.note("index in bytes");
                let bytes = self.value(format!("mul {index}, {size}"));
                self.value(format!("addr {flag}i8, {base}, {bytes}"))
            }
            1 => {
                self.note("index from 1");
                let next = self.value(format!("add nsw {index}, 1"));
                let at = self.value(format!("addr {ty}, {base}, {next}"));
                self.value(format!("addr {ty}, {at}, -1"))
            }
            2 => {
                self.note("index from 1");
                let before = self.value(format!("addr {ty}, {base}, -1"));
                let next = self.value(format!("add nsw {index}, 1"));
                self.value(format!("addr {ty}, {before}, {next}"))
            }
            3 => {
                self.note("address computed as an integer");
                let word = self.value(format!("ptrtoint {base} -> i64"));
                let bytes = self.value(format!("mul {index}, {size}"));
                let sum = self.value(format!("add {word}, {bytes}"));
                self.value(format!("inttoptr {sum} -> ptr"))
            }
            4 => {
                self.note("index guarded by a comparison");
                let below = self.value(format!("icmp ult {index}, 4"));
                let (found, at) = (self.name(), self.name());
                self.line(format!(
                    "{found} = if {below} -> ptr {{\n{at} = addr {flag}{ty}, {base}, {index}\n\
                     yield {at}\n}} else {{\nyield {base}\n}}"
                ));
                found
            }
            5 => {
                self.note("difference of pointers");
                let other = self.value(format!("addr {ty}, {base}, {index}"));
                let (a, b) = (
                    self.value(format!("ptrtoint {other} -> i64")),
                    self.value(format!("ptrtoint {base} -> i64")),
                );
                let bytes = self.value(format!("sub {a}, {b}"));
                match self.random.below(2) {
                    0 => self.value(format!("addr i8, {base}, {bytes}")),
                    _ => {
                        let count = self.value(format!("sdiv {bytes}, {size}"));
                        self.value(format!("addr {ty}, {base}, {count}"))
                    }
                }
            }
            6 => {
                self.note("walk over an array");
                let (end, i, at) = (self.name(), self.name(), self.name());
                self.line(format!("{end} = for {i} < {index} iter({at} = {base}) {{"));
                let next = self.value(format!("addr {flag}{ty}, {at}, 1"));
                self.line(format!("yield {next}\n}}"));
                end
            }
            _ => self.value(format!("addr {flag}{ty}, {base}, {index}")),
        }
    }

    /// Emits a walk from the end of an array backwards, or to its end.
    pub(super) fn walk(&mut self) {
        let Some(array) = self.pick(|ty| matches!(ty, Ty::Array(..))) else {
            // Not an error: no such value is visible.
            return;
        };
        let Ty::Array(shape, count) = array.ty else {
            unreachable!("the picked value is an array");
        };
        let ty = type_text(&self.shapes, shape);
        let end = self.value(format!("addr {ty}, {}, {count}", array.name));
        self.note("address one behind the end");
        if self.random.below(2) == 0 {
            let i = self.int();
            let back = self.value(format!("sub nsw -1, {i}"));
            let at = self.value(format!("addr {ty}, {end}, {back}"));
            self.push(at, Ty::Object(shape), array.level);
            return;
        }
        let (last, at) = (self.name(), self.name());
        self.line(format!(
            "{last} = loop iter({at} = {}) -> ptr {{",
            array.name
        ));
        let mark = self.values.len();
        self.push(at.clone(), Ty::Object(shape), array.level);
        self.statement(0);
        let next = self.value(format!("addr inbounds {ty}, {at}, 1"));
        let again = self.value(format!("icmp ne {next}, {end}"));
        self.line(format!("repeat {again}, {next}, {at}\n}}"));
        self.values.truncate(mark);
        self.push(last, Ty::Object(shape), array.level);
    }

    /// Emits a step to the neighbour in an array of two elements, and back.
    pub(super) fn neighbour(&mut self) {
        let Some(array) = self.pick(|ty| matches!(ty, Ty::Array(_, 2))) else {
            // Not an error: no such value is visible.
            return;
        };
        let Ty::Array(shape, _) = array.ty else {
            unreachable!("the picked value is an array");
        };
        self.note("neighbour of an element");
        let ty = type_text(&self.shapes, shape);
        let i = self.int();
        let at = self.value(format!("addr {ty}, {}, {i}", array.name));
        let (left, right) = (
            self.value(format!("addr {ty}, {at}, -1")),
            self.value(format!("addr {ty}, {at}, 1")),
        );
        let is_first = self.value(format!("icmp eq {i}, 0"));
        let other = self.value(format!("select {is_first}, {right}, {left}"));
        self.push(other, Ty::Object(shape), array.level);
    }

    /// Emits arithmetic on the address of a structure in an integer.
    pub(super) fn word(&mut self) {
        let shape = self.shape();
        let word = self.find(Ty::Word(shape), 9);
        let value = match self.random.below(if self.bits { 9 } else { 5 }) {
            0 => {
                self.note("tagged address");
                let tagged = self.value(format!("or {}, 1", word.name));
                self.value(format!("and {tagged}, -8"))
            }
            1 => {
                let there = self.value(format!("add {}, 24", word.name));
                self.value(format!("sub {there}, 24"))
            }
            2 => {
                let int = self.int();
                let bytes = self.value(format!("shl {int}, 4"));
                let there = self.value(format!("add {}, {bytes}", word.name));
                self.value(format!("sub {there}, {bytes}"))
            }
            3 => {
                let low = self.value(format!("and {}, 7", word.name));
                self.value(format!("sub {}, {low}", word.name))
            }
            4 => word.name.clone(),
            _ => {
                let object = self.find(Ty::Object(shape), 9);
                let plain = self.as_word(&object);
                self.bits_of_address(&plain)
            }
        };
        match self.random.below(2) {
            0 => drop(self.push(value, Ty::Word(shape), word.level)),
            _ => {
                let pointer = self.value(format!("inttoptr {value} -> ptr"));
                self.push(pointer, Ty::Object(shape), word.level);
            }
        }
    }

    /// Emits an address that is taken apart and assembled again.
    fn bits_of_address(&mut self, word: &str) -> String {
        self.note("bits of an address");
        match self.random.below(4) {
            0 => {
                let up = self.value(format!("shl {word}, 8"));
                let tagged = self.value(format!("or {up}, 5"));
                self.value(format!("lshr {tagged}, 8"))
            }
            1 => {
                let low = self.value(format!("trunc {word} -> i32"));
                let high = self.value(format!("lshr {word}, 32"));
                let slot = self.value("alloca i64, 1");
                let second = self.value(format!("addr i32, {slot}, 1"));
                let short = self.value(format!("trunc {high} -> i32"));
                self.line(format!("store {low}, {slot}\nstore {short}, {second}"));
                self.value(format!("load {slot} -> i64"))
            }
            2 => {
                let float = self.value(format!("bitcast {word} -> f64"));
                let slot = self.value("alloca f64, 1");
                self.line(format!("store {float}, {slot}"));
                let read = self.value(format!("load {slot} -> f64"));
                self.value(format!("bitcast {read} -> i64"))
            }
            _ => {
                let other = self.find(Ty::Word(0), 9);
                let both = self.value(format!("xor {word}, {}", other.name));
                self.value(format!("xor {both}, {}", other.name))
            }
        }
    }

    /// Emits a copy of bytes.
    pub(super) fn copy_bytes(&mut self, to: &str, from: &str, size: u64) {
        if to == from {
            return;
        }
        self.note("structure copied as bytes");
        match self.random.below(if self.bits { 10 } else { 9 }) {
            0 => self.copy_words(to, from, size / 8),
            1 => {
                let int = self.int();
                let zero = self.value(format!("mul {int}, 0"));
                let bytes = self.value(format!("add {zero}, {size}"));
                self.line(format!(
                    "call @llvm.memmove.p0.p0.i64({to}, {from}, {bytes}, false)"
                ));
            }
            2 => drop(self.value(format!("call @memcpy({to}, {from}, {size})"))),
            9 => self.copy_single_bytes(to, from, size),
            _ => self.line(format!(
                "call @llvm.memmove.p0.p0.i64({to}, {from}, {size}, false)"
            )),
        }
    }

    /// Emits a loop that copies words.
    pub(super) fn copy_words(&mut self, to: &str, from: &str, count: u64) {
        self.note("structure copied word by word");
        let (i, a, b, word) = (self.name(), self.name(), self.name(), self.name());
        let ty = *self.random.pick(&["i64", "ptr", "i64"]);
        self.line(format!(
            "for {i} < {count} {{\n{a} = addr i64, {from}, {i}\n{word} = load {a} -> {ty}\n\
             {b} = addr i64, {to}, {i}\nstore {word}, {b}\nyield\n}}"
        ));
    }

    fn copy_single_bytes(&mut self, to: &str, from: &str, size: u64) {
        self.note("structure copied byte by byte");
        let (i, a, b, byte) = (self.name(), self.name(), self.name(), self.name());
        self.line(format!(
            "for {i} < {size} {{\n{a} = addr i8, {from}, {i}\n{byte} = load {a} -> i8\n\
             {b} = addr i8, {to}, {i}\nstore {byte}, {b}\nyield\n}}"
        ));
    }

    /// Emits a copy of whole structures, of some of their members, or of tables.
    pub(super) fn copy(&mut self) {
        if self.random.below(3) == 0 {
            return self.copy_row();
        }
        let shape = self.shape();
        let to = self.find(Ty::Object(shape), 9);
        let from = self.find(Ty::Object(shape), to.level);
        let own = &self.shapes[shape];
        let first = self.random.below(own.fields.len() as u32) as usize;
        let (start, size) = match self.random.below(3) {
            0 => (own.offsets[first], own.size() - own.offsets[first]),
            1 => (
                own.offsets[first],
                own.offsets[first + 1] - own.offsets[first],
            ),
            _ => (0, own.size()),
        };
        let (a, b) = (
            self.value(format!("addr i8, {}, {start}", to.name)),
            self.value(format!("addr i8, {}, {start}", from.name)),
        );
        self.note("structure copied as bytes");
        self.line(format!(
            "call @llvm.memmove.p0.p0.i64({a}, {b}, {size}, false)"
        ));
    }

    fn copy_row(&mut self) {
        let Some(to) = self.pick(|ty| matches!(ty, Ty::Row(..))) else {
            // Not an error: no such value is visible.
            return;
        };
        let Ty::Row(shape, count) = to.ty else {
            unreachable!("the picked value is a table");
        };
        let from = self.find(Ty::Row(shape, count), to.level);
        match self.random.below(4) {
            0 => {
                self.note("pointers in lanes");
                let lanes = self.value(format!("load align 8 {} -> <2 x ptr>", from.name));
                let turned = self.value(format!("shuffle [1, 0] {lanes}, {lanes}"));
                let stored = self.random.pick(&[lanes, turned]).clone();
                self.line(format!("store align 8 {stored}, {}", to.name));
            }
            1 => {
                self.note("two addresses in an integer");
                let both = self.value(format!("load align 8 {} -> i128", from.name));
                let low = self.value(format!("trunc {both} -> i64"));
                let high = self.value(format!("lshr {both}, i128 64"));
                let upper = self.value(format!("trunc {high} -> i64"));
                let word = self.random.pick(&[low, upper]).clone();
                self.push(word, Ty::Word(shape), from.level);
                self.line(format!("store align 8 {both}, {}", to.name));
            }
            2 => {
                let pair = self.value(format!("load {} -> {{ptr, ptr}}", from.name));
                let second = self.value(format!("extractvalue [1] {pair}"));
                let other = self.value(format!("insertvalue [0] {pair}, {second}"));
                self.line(format!("store {other}, {}", to.name));
            }
            _ => self.copy_bytes(&to.name, &from.name, 8 * count),
        }
    }

    /// Emits the address of one of two members with pointers to equal structures, by a computed offset.
    pub(super) fn computed_member(&mut self) {
        let shape = self.shape();
        let object = self.find(Ty::Object(shape), 9);
        let own = self.shapes[shape].clone();
        let members = || own.fields.iter().zip(&own.offsets);
        let pointers = members().filter_map(|(field, at)| match field {
            Field::Pointer(Pointee::Object(to)) => Some((*to, *at)),
            _ => None,
        });
        let pointers: Vec<(usize, u64)> = pointers.collect();
        let (to, first) = *self.random.pick(&pointers);
        let equal: Vec<u64> = pointers.iter().filter(|p| p.0 == to).map(|p| p.1).collect();
        let second = *self.random.pick(&equal);
        let int = self.int();
        let odd = self.value(format!("icmp ne {int}, 0"));
        let at = match self.random.below(4) {
            0 => {
                self.note("one of several constant offsets");
                let offset = self.value(format!("select {odd}, {first}, {second}"));
                self.value(format!("addr i8, {}, {offset}", object.name))
            }
            1 => {
                self.note("one of several constant offsets");
                let offset = self.value(format!(
                    "if {odd} -> i64 {{\nyield {first}\n}} else {{\nyield {second}\n}}"
                ));
                self.value(format!("addr i8, {}, {offset}", object.name))
            }
            2 => {
                self.note("offset from a table");
                let prefix = self.prefix;
                let offset = self.value(format!("load @{prefix}offset{shape} -> i64"));
                let at = self.value(format!("addr i8, {}, {offset}", object.name));
                let to = own.fields.iter().find_map(|field| match field {
                    Field::Pointer(Pointee::Object(to)) => Some(*to),
                    _ => None,
                });
                let Some(to) = to else {
                    unreachable!("each structure has a pointer to a structure");
                };
                self.push(at, Ty::Cell(to), object.level);
                return;
            }
            _ => {
                self.note("members indexed like an array");
                let distance = second as i64 - first as i64;
                let start = self.value(format!("addr i8, {}, {first}", object.name));
                if self.keeps_arrays && distance > 0 && !self.crosses_array(shape, first, second) {
                    let index = self.value(format!("mul {int}, {}", distance / 8));
                    self.value(format!("addr ptr, {start}, {index}"))
                } else {
                    start
                }
            }
        };
        self.push(at, Ty::Cell(to), object.level);
    }

    /// Returns true if an array lies between two offsets of a structure.
    fn crosses_array(&self, shape: usize, first: u64, second: u64) -> bool {
        let own = &self.shapes[shape];
        let mut between = own.fields.iter().zip(&own.offsets);
        between.any(|(field, at)| {
            let is_plain = matches!(field, Field::Pointer(_) | Field::Link(_) | Field::Word(_));
            (first..second).contains(at) && !is_plain
        })
    }

    /// Emits a pointer to a member that leads back to the structure.
    pub(super) fn owner_of_member(&mut self) {
        let shape = self.shape();
        let object = self.find(Ty::Object(shape), 9);
        let field = self.random.below(self.shapes[shape].fields.len() as u32) as usize;
        let offset = self.shapes[shape].offsets[field];
        let element = match self.shapes[shape].fields[field] {
            Field::Row(..) => Some("ptr".to_string()),
            Field::Nests(inner, _) => Some(type_text(&self.shapes, inner)),
            _ => None,
        };
        if let Some(ty) = element {
            self.note("structure around an element");
            let member = self.member_address(&object.name, shape, field);
            let int = self.int();
            let at = self.value(format!("addr {ty}, {member}, {int}"));
            let back = self.value(format!("addr i8, {at}, -{offset}"));
            let is_first = self.value(format!("icmp eq {int}, 0"));
            let other = self.default_name(Ty::Object(shape));
            let owner = self.value(format!("select {is_first}, {back}, {other}"));
            self.push(owner, Ty::Object(shape), object.level);
            return;
        }
        self.note("structure around a member");
        let member = self.member_address(&object.name, shape, field);
        let slot = self.value("alloca ptr, 1");
        self.line(format!("store {member}, {slot}"));
        let back = match self.random.below(2) {
            0 => self.value(format!("load {slot} -> ptr")),
            _ if self.prefix.is_empty() => self.value(format!("call @same({member})")),
            _ => member,
        };
        let back = self.value(format!("addr i8, {back}, -{offset}"));
        self.push(back, Ty::Object(shape), object.level);
    }

    /// Emits an atomic exchange of a pointer.
    pub(super) fn exchange(&mut self) {
        let shape = self.shape();
        let cell = self.find(Ty::Cell(shape), 9);
        let value = self.find(Ty::Object(shape), cell.level);
        self.note("atomic exchange");
        let old = self.value(format!(
            "atomicrmw xchg seq_cst {}, {}",
            cell.name, value.name
        ));
        self.push(old, Ty::Object(shape), cell.level);
    }

    /// Returns the address of a structure as an integer.
    pub(super) fn as_word(&mut self, object: &Val) -> String {
        self.value(format!("ptrtoint {} -> i64", object.name))
    }
}
