//! Memory programs: allocation and initialisation of objects, and accesses to members.

use super::shapes::{Field, Pointee, member_tag, number_tag, pointer_type, scalar_tag, type_text};
use super::{Graph, Ty, Val};

impl Graph<'_> {
    /// Emits an initialised structure.
    pub(super) fn new_object(&mut self, shape: usize) -> Val {
        let size = self.shapes[shape].size();
        let (name, level) = match self.random.below(7) {
            0 | 1 => {
                let ty = type_text(&self.shapes, shape);
                self.note("structure on the stack");
                let name = self.value(format!("alloca {ty}, 1"));
                (name, self.stack_level)
            }
            2 => (self.value(format!("call @calloc(1, {size})")), 0),
            3 => {
                self.note("block with a header");
                let block = self.value(format!("call @malloc({})", size + 16));
                (self.value(format!("addr inbounds i8, {block}, 16")), 0)
            }
            4 if !self.keeps_arrays && !self.has_arrays(shape) => (self.reused_block(shape), 0),
            _ => (self.value(format!("call @malloc({size})")), 0),
        };
        self.fill(&name, shape, level);
        let ty = Ty::Object(shape);
        self.push(name, ty, level)
    }

    /// Returns true if a structure has an array. The analysis assumes that an index stays in its array: it must know the
    /// structure.
    fn has_arrays(&self, shape: usize) -> bool {
        self.shapes[shape].fields.iter().any(|field| match field {
            Field::Row(..) | Field::Nests(..) | Field::Numbers(_) => true,
            Field::Nested(inner) => self.has_arrays(*inner),
            _ => false,
        })
    }

    /// Emits a block that first holds another structure, without arrays.
    fn reused_block(&mut self, shape: usize) -> String {
        self.note("block reused with another structure");
        let other = self.random.below(self.shapes.len() as u32) as usize;
        let other = if self.has_arrays(other) { shape } else { other };
        let size = self.shapes[shape].size().max(self.shapes[other].size());
        let name = self.value(format!("call @malloc({size})"));
        self.fill(&name, other, 0);
        let first = Val {
            name: name.clone(),
            ty: Ty::Object(other),
            level: 0,
        };
        let field = self.random.below(self.shapes[other].fields.len() as u32) as usize;
        // Pointers into the first structure end with it.
        let mark = self.values.len();
        self.load_member(&first, other, field);
        self.values.truncate(mark);
        name
    }

    /// Emits the initialisation of a structure.
    pub(super) fn fill(&mut self, to: &str, shape: usize, level: u8) {
        let from = self.find(Ty::Object(shape), level);
        match self.random.below(6) {
            0 | 1 => self.copy_bytes(to, &from.name, self.shapes[shape].size()),
            2 => {
                self.note("structure copied as a value");
                let ty = type_text(&self.shapes, shape);
                let whole = self.value(format!("load {} -> {ty}", from.name));
                self.line(format!("store {whole}, {to}"));
            }
            3 => self.copy_words(to, &from.name, self.shapes[shape].size() / 8),
            _ => {
                let own = Val {
                    name: to.to_string(),
                    ty: Ty::Object(shape),
                    level,
                };
                for field in 0..self.shapes[shape].fields.len() {
                    self.set_member(&own, shape, field);
                }
            }
        }
    }

    /// Emits the first store to a member, with all elements.
    fn set_member(&mut self, object: &Val, shape: usize, field: usize) {
        match self.shapes[shape].fields[field] {
            Field::Row(to, count) => {
                let row = self.member_address(&object.name, shape, field);
                for k in 0..count {
                    let value = self.find(Ty::Object(to), object.level);
                    let at = self.value(format!("addr inbounds ptr, {row}, {k}"));
                    self.store_pointer(&value.name, &at, Pointee::Object(to));
                }
            }
            Field::Nested(inner) => {
                let at = self.member_address(&object.name, shape, field);
                let from = self.find(Ty::Object(inner), object.level);
                self.copy_bytes(&at, &from.name, self.shapes[inner].size());
            }
            Field::Nests(inner, count) => {
                let at = self.member_address(&object.name, shape, field);
                for k in 0..count {
                    let size = self.shapes[inner].size();
                    let place = self.value(format!("addr inbounds i8, {at}, {}", k * size));
                    let from = self.find(Ty::Object(inner), object.level);
                    self.copy_bytes(&place, &from.name, size);
                }
            }
            _ => self.store_member(object, shape, field),
        }
    }

    /// Returns the address of a member.
    pub(super) fn member_address(&mut self, object: &str, shape: usize, field: usize) -> String {
        let offset = self.shapes[shape].offsets[field];
        let flag = *self.random.pick(&["", "inbounds "]);
        match self.random.below(3) {
            0 if offset == 0 => object.to_string(),
            0 => self.value(format!("addr {flag}i8, {object}, {offset}")),
            _ => {
                let ty = type_text(&self.shapes, shape);
                self.value(format!("addr {flag}{ty}, {object}, 0, i32 {field}"))
            }
        }
    }

    fn tag(&self, tag: String) -> String {
        if self.tags { tag } else { String::new() }
    }

    /// Emits a store of a pointer outside a known structure.
    pub(super) fn store_pointer(&mut self, value: &str, to: &str, pointee: Pointee) {
        let tag = self.tag(scalar_tag(pointer_type(&self.shapes, pointee)));
        self.line(format!("store {value}, {to}{tag}"));
    }

    /// Emits a load of a pointer outside a known structure.
    pub(super) fn load_pointer(&mut self, from: &str, pointee: Pointee) -> String {
        let tag = self.tag(scalar_tag(pointer_type(&self.shapes, pointee)));
        self.value(format!("load {from} -> ptr{tag}"))
    }

    /// Emits a store to a member.
    pub(super) fn store_member(&mut self, object: &Val, shape: usize, field: usize) {
        let kind = self.shapes[shape].fields[field];
        let tag = self.tag(member_tag(&self.shapes, shape, field, 0));
        let at = self.member_address(&object.name, shape, field);
        let value = match kind {
            Field::Number => format!("{}.5", self.random.below(9)),
            Field::Index => self.int(),
            Field::Pair => {
                let behind = self.value(format!("addr i8, {at}, 4"));
                let int = self.int();
                let short = self.value(format!("trunc {int} -> i32"));
                self.line(format!(
                    "store {short}, {behind}{}",
                    self.tag_of_pair(shape, field)
                ));
                short
            }
            Field::Pointer(pointee) => self.find(Ty::of(pointee), object.level).name,
            Field::Link(to) => match self.random.below(3) {
                0 => "ptr null".into(),
                _ => self.find(Ty::Object(to), object.level).name,
            },
            Field::Word(to) => self.find(Ty::Word(to), object.level).name,
            Field::Union(to) => {
                return self.store_union(&at, &tag, (shape, field), to, object.level);
            }
            Field::Row(to, count) => {
                let place = self.element_of_row(&at, count);
                let value = self.find(Ty::Object(to), object.level);
                return self.store_pointer(&value.name, &place, Pointee::Object(to));
            }
            Field::Nested(inner) => {
                let from = self.find(Ty::Object(inner), object.level);
                return self.copy_bytes(&at, &from.name, self.shapes[inner].size());
            }
            Field::Nests(inner, count) => {
                let place = self.element_of_array(&at, inner, count);
                let from = self.find(Ty::Object(inner), object.level);
                return self.copy_bytes(&place, &from.name, self.shapes[inner].size());
            }
            Field::Numbers(_) => {
                let int = self.int();
                let place = self.value(format!("addr inbounds f64, {at}, {int}"));
                let tag = self.tag(number_tag());
                return self.line(format!("store 1.5, {place}{tag}"));
            }
        };
        self.line(format!("store {value}, {at}{tag}"));
    }

    fn tag_of_pair(&self, shape: usize, field: usize) -> String {
        self.tag(member_tag(&self.shapes, shape, field, 4))
    }

    fn store_union(
        &mut self,
        at: &str,
        tag: &str,
        (shape, field): (usize, usize),
        to: usize,
        level: u8,
    ) {
        self.note("cell with an address or a number");
        let cell = self.value(format!("addr i8, {at}, 8"));
        let inner = self.tag(member_tag(&self.shapes, shape, field, 8));
        let (kind, value) = match self.random.below(3) {
            0 => (0, "2.25".to_string()),
            1 => (1, self.find(Ty::Word(to), level).name),
            _ => (1, self.find(Ty::Object(to), level).name),
        };
        self.line(format!(
            "store {kind}, {at}{tag}\nstore {value}, {cell}{inner}"
        ));
    }

    /// Emits a load of a member, or its address if the member is an aggregate. The value becomes visible.
    pub(super) fn load_member(&mut self, object: &Val, shape: usize, field: usize) {
        let tag = self.tag(member_tag(&self.shapes, shape, field, 0));
        let at = self.member_address(&object.name, shape, field);
        let (name, ty) = match self.shapes[shape].fields[field] {
            Field::Number => {
                let number = self.value(format!("load {at} -> f64{tag}"));
                let tag = self.tag(number_tag());
                let to = self.find(Ty::Numbers, 9);
                return self.line(format!("store {number}, {}{tag}", to.name));
            }
            Field::Index => (self.value(format!("load {at} -> i64{tag}")), Ty::Int),
            Field::Pair => {
                let bytes = 4 * u64::from(self.random.below(2));
                let place = self.value(format!("addr i8, {at}, {bytes}"));
                let tag = self.tag(member_tag(&self.shapes, shape, field, bytes));
                let short = self.value(format!("load {place} -> i32{tag}"));
                let cast = *self.random.pick(&["sext", "zext", "zext nneg"]);
                (self.value(format!("{cast} {short} -> i64")), Ty::Int)
            }
            Field::Pointer(pointee) => {
                let name = self.value(format!("load {at} -> ptr{tag}"));
                (name, Ty::of(pointee))
            }
            Field::Link(to) => {
                let name = self.value(format!("load {at} -> ptr{tag}"));
                (self.not_null(&name, to), Ty::Object(to))
            }
            Field::Word(to) => {
                self.note("address in an integer cell");
                (self.value(format!("load {at} -> i64{tag}")), Ty::Word(to))
            }
            Field::Union(to) => {
                let name = self.load_union(&at, &tag, (shape, field), to);
                (name, Ty::Object(to))
            }
            Field::Row(to, count) => (at, Ty::Row(to, count)),
            Field::Nested(inner) => (at, Ty::Object(inner)),
            Field::Nests(inner, count) => (at, Ty::Array(inner, count)),
            Field::Numbers(_) => (at, Ty::Numbers),
        };
        self.push(name, ty, object.level);
    }

    fn load_union(
        &mut self,
        at: &str,
        tag: &str,
        (shape, field): (usize, usize),
        to: usize,
    ) -> String {
        let kind = self.value(format!("load {at} -> i64{tag}"));
        let is_address = self.value(format!("icmp eq {kind}, 1"));
        let found = self.name();
        self.line(format!("{found} = if {is_address} -> ptr {{"));
        let cell = self.value(format!("addr i8, {at}, 8"));
        let inner = self.tag(member_tag(&self.shapes, shape, field, 8));
        let value = match self.random.below(2) {
            0 => self.value(format!("load {cell} -> ptr{inner}")),
            _ => {
                let word = self.value(format!("load {cell} -> i64{inner}"));
                self.value(format!("inttoptr {word} -> ptr"))
            }
        };
        let other = self.default_name(Ty::Object(to));
        self.line(format!("yield {value}\n}} else {{\nyield {other}\n}}"));
        found
    }

    /// Returns a pointer, or the program's default object if the pointer is null.
    pub(super) fn not_null(&mut self, pointer: &str, shape: usize) -> String {
        self.note("null test");
        let other = self.default_name(Ty::Object(shape));
        let test = *self.random.pick(&["eq", "ne"]);
        let null = self.value(format!("icmp {test} {pointer}, null"));
        let (a, b) = match test {
            "eq" => (other, pointer.to_string()),
            _ => (pointer.to_string(), other),
        };
        if self.random.below(2) == 0 {
            return self.value(format!("select {null}, {a}, {b}"));
        }
        self.value(format!(
            "if {null} -> ptr {{\nyield {a}\n}} else {{\nyield {b}\n}}"
        ))
    }

    /// Emits an array of structures.
    pub(super) fn new_array(&mut self, shape: usize) -> Val {
        let (size, count) = (self.shapes[shape].size(), 2);
        let ty = type_text(&self.shapes, shape);
        let (mut name, level) = match self.random.below(5) {
            0 => (
                self.value(format!("alloca [{count} x {ty}], 1")),
                self.stack_level,
            ),
            1 => (
                self.value(format!("alloca {ty}, {count}")),
                self.stack_level,
            ),
            2 => (self.value(format!("call @calloc({count}, {size})")), 0),
            _ => (self.value(format!("call @malloc({})", count * size)), 0),
        };
        let is_heap = level == 0
            && self
                .out
                .lines()
                .last()
                .is_some_and(|l| l.contains("alloc("));
        if is_heap && self.random.below(3) == 0 {
            self.note("realloc");
            self.fill(&name, shape, level);
            name = self.value(format!("call @realloc({name}, {})", count * size));
            let second = self.value(format!("addr {ty}, {name}, 1"));
            self.fill(&second, shape, level);
        } else if self.random.below(2) == 0 {
            let (i, at) = (self.name(), self.name());
            self.line(format!(
                "for {i} < {count} {{\n{at} = addr inbounds {ty}, {name}, {i}"
            ));
            self.fill(&at, shape, level);
            self.line("yield\n}");
        } else {
            for k in 0..count {
                let at = self.value(format!("addr i8, {name}, {}", k * size));
                self.fill(&at, shape, level);
            }
        }
        self.note("array of structures");
        self.push(name, Ty::Array(shape, count), level)
    }

    /// Emits a table of pointers.
    pub(super) fn new_row(&mut self, shape: usize) -> Val {
        let count = 2 + 2 * u64::from(self.random.below(2));
        let (name, level) = match self.random.below(3) {
            0 => (
                self.value(format!("alloca [{count} x ptr], 1")),
                self.stack_level,
            ),
            1 => (self.value(format!("alloca ptr, {count}")), self.stack_level),
            _ => (self.value(format!("call @malloc({})", 8 * count)), 0),
        };
        self.note("table of pointers");
        if self.random.below(3) == 0 {
            let value = self.find(Ty::Object(shape), level);
            let (i, at) = (self.name(), self.name());
            self.line(format!(
                "for {i} < {count} {{\n{at} = addr ptr, {name}, {i}"
            ));
            self.store_pointer(&value.name, &at, Pointee::Object(shape));
            self.line("yield\n}");
        } else {
            for k in 0..count {
                let value = self.find(Ty::Object(shape), level);
                let at = self.value(format!("addr inbounds ptr, {name}, {k}"));
                self.store_pointer(&value.name, &at, Pointee::Object(shape));
            }
        }
        self.push(name, Ty::Row(shape, count), level)
    }

    /// Emits a variable with a pointer.
    pub(super) fn new_cell(&mut self, shape: usize) -> Val {
        let (name, level) = match self.random.below(2) {
            0 => (self.value("alloca ptr, 1"), self.stack_level),
            _ => (self.value("call @malloc(8)"), 0),
        };
        let value = self.find(Ty::Object(shape), level);
        self.store_pointer(&value.name, &name, Pointee::Object(shape));
        self.push(name, Ty::Cell(shape), level)
    }
}
