//! Memory programs: random programs in the text form that do with pointers what real programs do.
//!
//! Structures with members of many kinds lie on the heap, on the stack, in global variables, in arrays and in other
//! structures. Statements load, store, copy, merge, carry and move pointers to them, and pass them to functions. All
//! accesses are in bounds, and the programs obey the rules that the points-to analysis assumes: a variable index stays
//! in its array member.
//!
//! Functions and global variables whose names begin with `hidden_` are *unknown code*: the interpreter runs them, the
//! analysis sees declarations. `@hidden_main` calls `@f` with structures of its own.
//!
//! A value has a *level*: 0 for memory that outlives the function, 1 for the arguments of a function that keeps no
//! argument, 2 for its stack. A structure receives pointers of its own level or below, so that no pointer dangles.

mod blocks;
mod control;
mod movement;
mod objects;
mod shapes;

use super::Random;
use shapes::{Field, Pointee, Shape, type_text};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A program, and its contents.
#[derive(Clone, Debug)]
pub struct MemoryProgram {
    /// The text, with unknown code.
    pub text: String,
    /// The contents.
    pub features: BTreeSet<&'static str>,
    /// True if the program takes addresses apart and assembles them again.
    pub assembles_addresses: bool,
}

/// The type of a visible value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    /// The address of a structure.
    Object(usize),
    /// The address of a pointer to a structure.
    Cell(usize),
    /// The address of consecutive structures.
    Array(usize, u64),
    /// The address of consecutive pointers to structures.
    Row(usize, u64),
    /// The address of at least two floats.
    Numbers,
    /// A callback.
    Code,
    /// The integer 0 or 1.
    Int,
    /// The address of a structure as an integer.
    Word(usize),
}

impl Ty {
    fn of(pointee: Pointee) -> Ty {
        match pointee {
            Pointee::Object(shape) => Ty::Object(shape),
            Pointee::Cell(shape) => Ty::Cell(shape),
            Pointee::Numbers => Ty::Numbers,
            Pointee::Code => Ty::Code,
        }
    }
    fn text(self) -> &'static str {
        match self {
            Ty::Int | Ty::Word(_) => "i64",
            _ => "ptr",
        }
    }
}

/// A visible value.
#[derive(Clone, Debug)]
struct Val {
    name: String,
    ty: Ty,
    level: u8,
}

/// A callable function. Its first parameter is the depth of recursion.
#[derive(Clone, Debug)]
struct Helper {
    name: String,
    params: Vec<Ty>,
    result: Option<Ty>,
    /// True if no argument is stored in memory that outlives it.
    keeps_nothing: bool,
    /// The parameter that may be null.
    nullable: Option<usize>,
}

struct Graph<'r> {
    random: &'r mut Random,
    shapes: Vec<Shape>,
    out: String,
    names: u32,
    values: Vec<Val>,
    budget: u32,
    /// The start of the names of the visible global variables.
    prefix: &'static str,
    helpers: Vec<Helper>,
    unknown: Vec<Helper>,
    /// The types of the callbacks' parameters; the result has the first.
    code: (usize, usize),
    is_callback: bool,
    stack_level: u8,
    param_level: u8,
    /// True to emit TBAA tags.
    tags: bool,
    /// True to take addresses apart.
    bits: bool,
    /// True if no block holds different structures in turn.
    keeps_arrays: bool,
    /// True if the initial variables lead to each other.
    is_dense: bool,
    features: BTreeSet<&'static str>,
}

/// Returns the memory program of a seed.
pub fn memory_program(seed: u64) -> MemoryProgram {
    let mut random = Random::new(seed ^ 0x0067_7261_7068);
    let shapes = shapes::shapes(&mut random);
    let count = shapes.len() as u32;
    let code = (random.below(count) as usize, random.below(count) as usize);
    let (tags, bits) = (random.below(3) > 0, random.below(8) == 0);
    let (keeps_arrays, is_dense) = (random.below(2) == 0, random.below(4) == 0);
    let mut graph = Graph {
        random: &mut random,
        shapes,
        out: String::new(),
        names: 0,
        values: Vec::new(),
        budget: 0,
        prefix: "",
        helpers: Vec::new(),
        unknown: Vec::new(),
        code,
        is_callback: false,
        stack_level: 0,
        param_level: 0,
        tags,
        bits,
        keeps_arrays,
        is_dense,
        features: BTreeSet::new(),
    };
    graph.program();
    MemoryProgram {
        text: graph.out,
        features: graph.features,
        assembles_addresses: bits,
    }
}

impl Graph<'_> {
    fn program(&mut self) {
        if self.tags {
            let tbaa = shapes::tbaa_text(&self.shapes);
            self.line(tbaa.trim_end());
        }
        self.line(
            "declare @malloc(i64) -> ptr\ndeclare @calloc(i64, i64) -> ptr\n\
             declare @realloc(ptr, i64) -> ptr\ndeclare @memcpy(ptr, ptr, i64) -> ptr\n\
             declare @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1) -> void",
        );
        self.globals();
        self.prefix = "hidden_";
        self.globals();
        let roots: Vec<Ty> = (0..self.random.below(3)).map(|_| self.any_type()).collect();
        let unknown = (0..self.random.below(3)).map(|k| self.signature(format!("hidden_u{k}")));
        let unknown: Vec<Helper> = unknown.collect::<Vec<_>>();
        self.callback("hidden_code");
        for helper in &unknown {
            self.function(helper, 4);
        }
        self.main(&roots);
        self.prefix = "";
        self.unknown = unknown;
        self.line("func @same(%p: ptr) -> ptr {\nreturn %p\n}");
        self.line("global @codes: [2 x ptr] internal = zero 16 relocations(0: @code0, 8: @code1)");
        for name in ["code0", "code1"] {
            self.callback(name);
        }
        for number in 0..self.random.below(4) {
            let helper = self.signature(format!("h{number}"));
            self.function(&helper, 7);
            self.helpers.push(helper);
        }
        self.root(&roots);
    }

    /// Emits the program's function for the analysis.
    fn root(&mut self, params: &[Ty]) {
        self.stack_level = 0;
        self.param_level = 0;
        let budget = 6 + self.random.below(18);
        self.start(budget);
        let names: Vec<String> = (0..params.len()).map(|k| format!("%p{k}")).collect();
        let list: Vec<String> = std::iter::zip(&names, params)
            .map(|(name, ty)| format!("{name}: {}", ty.text()))
            .collect();
        if !params.is_empty() {
            self.note("structures of the caller");
        }
        self.line(format!(
            "func @f({}) {{",
            ["%n: i64".to_string()]
                .into_iter()
                .chain(list)
                .collect::<Vec<_>>()
                .join(", ")
        ));
        self.push("%n".into(), Ty::Int, 0);
        for (name, ty) in names.into_iter().zip(params) {
            self.push(name, *ty, 0);
        }
        for _ in 0..self.random.below(4) {
            let shape = self.shape();
            self.new_object(shape);
        }
        while self.budget > 0 {
            self.block(2);
        }
        self.line("return\n}");
    }

    /// Emits the caller of the program: unknown code.
    fn main(&mut self, params: &[Ty]) {
        self.stack_level = 0;
        self.param_level = 0;
        self.start(6);
        self.line("func @hidden_main(%n: i64) {");
        self.push("%n".into(), Ty::Int, 0);
        self.block(1);
        let mut args = vec!["%n".to_string()];
        for ty in params {
            args.push(self.find(*ty, 0).name);
        }
        self.line(format!("call @f({})\nreturn\n}}", args.join(", ")));
    }

    fn start(&mut self, budget: u32) {
        self.names = 0;
        self.values.clear();
        self.budget = budget;
    }

    fn signature(&mut self, name: String) -> Helper {
        let params: Vec<Ty> = (0..1 + self.random.below(3))
            .map(|_| self.any_type())
            .collect();
        let result = (self.random.below(3) > 0).then(|| self.any_type());
        let is_hidden = name.starts_with("hidden_");
        let nullable = params.iter().position(|ty| matches!(ty, Ty::Object(_)));
        let nullable = nullable.filter(|_| !is_hidden && self.random.below(3) == 0);
        Helper {
            name,
            params,
            result,
            keeps_nothing: !is_hidden && self.random.below(2) == 0,
            nullable,
        }
    }

    /// Emits a function.
    fn function(&mut self, own: &Helper, budget: u32) {
        self.stack_level = 2;
        self.param_level = u8::from(own.keeps_nothing);
        let budget = 2 + self.random.below(budget);
        self.start(budget);
        let params = own.params.iter().enumerate();
        let params: Vec<String> = params
            .map(|(k, ty)| format!("%p{k}: {}", ty.text()))
            .collect();
        let result = own.result.map_or("void", Ty::text);
        self.line(format!(
            "func @{}(%d: i64, {}) -> {result} {{",
            own.name,
            params.join(", ")
        ));
        for (k, ty) in own.params.iter().enumerate() {
            let mut name = format!("%p{k}");
            if let Ty::Object(shape) = *ty
                && own.nullable == Some(k)
            {
                name = self.not_null(&name, shape);
            }
            self.push(name, *ty, self.param_level);
        }
        if self.random.below(4) == 0 {
            self.recurse(own);
        }
        self.block(1);
        match own.result {
            None => self.line("return\n}"),
            Some(ty) => {
                let value = self.find(ty, self.param_level);
                self.line(format!("return {}\n}}", value.name));
            }
        }
    }

    /// Emits a function of the callbacks' type.
    fn callback(&mut self, name: &str) {
        self.stack_level = 2;
        self.param_level = 0;
        let budget = 1 + self.random.below(5);
        self.start(budget);
        self.line(format!("func @{name}(%p0: ptr, %p1: ptr) -> ptr {{"));
        let (first, second) = self.code;
        self.push("%p0".into(), Ty::Object(first), 0);
        self.push("%p1".into(), Ty::Object(second), 0);
        self.is_callback = true;
        self.block(1);
        self.is_callback = false;
        let value = self.find(Ty::Object(first), 0);
        self.line(format!("return {}\n}}", value.name));
    }

    fn block(&mut self, depth: u32) {
        for _ in 0..1 + self.random.below(4) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        let shape = self.shape();
        match self.random.below(if depth == 0 { 27 } else { 36 }) {
            0 => drop(self.new_object(shape)),
            1 => drop(self.new_array(shape)),
            2 => drop(self.new_row(shape)),
            3 => drop(self.new_cell(shape)),
            4..=7 => {
                let object = self.find(Ty::Object(shape), 9);
                let field = self.random.below(self.shapes[shape].fields.len() as u32);
                self.load_member(&object, shape, field as usize);
            }
            8..=10 => {
                let object = self.find(Ty::Object(shape), 9);
                let field = self.random.below(self.shapes[shape].fields.len() as u32);
                self.store_member(&object, shape, field as usize);
            }
            11 | 12 => {
                let cell = self.find(Ty::Cell(shape), 9);
                let name = self.load_pointer(&cell.name, Pointee::Object(shape));
                self.push(name, Ty::Object(shape), cell.level);
            }
            13 => {
                let cell = self.find(Ty::Cell(shape), 9);
                let value = self.find(Ty::Object(shape), cell.level);
                self.store_pointer(&value.name, &cell.name, Pointee::Object(shape));
            }
            14 => self.member_cell(),
            15 => self.row_element(),
            16 => self.array_element(),
            17 => self.word(),
            18 => self.copy(),
            19 => self.computed_member(),
            20 => match self.random.below(3) {
                0 => self.owner_of_member(),
                1 => self.exchange(),
                _ => self.neighbour(),
            },
            21 | 22 if !self.helpers.is_empty() => self.call_helper(),
            23 => self.call_code(),
            24 => self.call_unknown(),
            27 | 28 => self.merge(depth - 1),
            29 | 30 => self.carried(depth - 1),
            31 => self.branch(depth - 1),
            32 => self.walk(),
            33 | 34 => self.call_helper(),
            25 | 26 | 35 => self.block_statement(),
            _ => self.row_element(),
        }
    }

    /// Emits the address of a pointer in a structure.
    fn member_cell(&mut self) {
        let shape = self.shape();
        let object = self.find(Ty::Object(shape), 9);
        let fields = self.shapes[shape].fields.clone();
        let pointers = fields
            .iter()
            .enumerate()
            .filter_map(|(k, field)| match field {
                Field::Pointer(Pointee::Object(to)) => Some((k, *to)),
                _ => None,
            });
        let pointers: Vec<(usize, usize)> = pointers.collect();
        let (field, to) = *self.random.pick(&pointers);
        let at = self.member_address(&object.name, shape, field);
        self.push(at, Ty::Cell(to), object.level);
    }

    /// Emits the address of a pointer in a table.
    fn row_element(&mut self) {
        let shape = self.shape();
        let row = self.pick(|ty| matches!(ty, Ty::Row(..)));
        let row = match row {
            Some(row) => row,
            None => self.find(Ty::Row(shape, 4), 9),
        };
        let Ty::Row(to, count) = row.ty else {
            unreachable!("the picked value is a table");
        };
        let at = self.element_of_row(&row.name, count);
        self.push(at, Ty::Cell(to), row.level);
    }

    /// Emits the address of a structure in an array, or of its member by one path of indices.
    fn array_element(&mut self) {
        let shape = self.shape();
        let array = match self.pick(|ty| matches!(ty, Ty::Array(..))) {
            Some(array) => array,
            None => self.find(Ty::Array(shape, 2), 9),
        };
        let Ty::Array(to, count) = array.ty else {
            unreachable!("the picked value is an array");
        };
        let row = self.shapes[to]
            .fields
            .iter()
            .position(|f| matches!(f, Field::Row(..)));
        if let Some(field) = row
            && let Field::Row(inner, length) = self.shapes[to].fields[field]
            && self.random.below(2) == 0
        {
            self.note("table in an array of structures");
            let ty = type_text(&self.shapes, to);
            let (i, j) = (self.index(count), self.index(length));
            let at = format!("addr {ty}, {}, {i}, i32 {field}, {j}", array.name);
            let at = self.value(at);
            self.push(at, Ty::Cell(inner), array.level);
            return;
        }
        let at = self.element_of_array(&array.name, to, count);
        self.push(at, Ty::Object(to), array.level);
    }

    fn note(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }
    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }
    /// Emits an op with one result. Returns its name.
    fn value(&mut self, op: impl AsRef<str>) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "{name} = {}", op.as_ref());
        name
    }
    /// Makes a value visible. Most pointers are used at once: only executed accesses show a missing target.
    fn push(&mut self, name: String, ty: Ty, level: u8) -> Val {
        let value = Val { name, ty, level };
        if self.prefix.is_empty() && self.random.below(3) > 0 {
            match ty {
                Ty::Object(_) | Ty::Cell(_) | Ty::Array(..) | Ty::Row(..) | Ty::Numbers => {
                    self.value(format!("load {} -> i64", value.name));
                }
                Ty::Word(_) => {
                    let pointer = self.value(format!("inttoptr {} -> ptr", value.name));
                    self.value(format!("load {pointer} -> i64"));
                }
                Ty::Code | Ty::Int => {}
            }
        }
        self.values.push(value.clone());
        value
    }
    fn shape(&mut self) -> usize {
        self.random.below(self.shapes.len() as u32) as usize
    }
    fn any_type(&mut self) -> Ty {
        let shape = self.shape();
        match self.random.below(10) {
            0..=4 => Ty::Object(shape),
            5 | 6 => Ty::Cell(shape),
            7 => Ty::Array(shape, 2),
            8 => Ty::Row(shape, 4),
            _ => *self.random.pick(&[Ty::Word(shape), Ty::Code, Ty::Numbers]),
        }
    }
    fn int(&mut self) -> String {
        match self.pick(|ty| ty == Ty::Int) {
            Some(value) if self.random.below(4) > 0 => value.name,
            _ => {
                let prefix = self.prefix;
                self.value(format!("load @{prefix}one -> i64"))
            }
        }
    }
    /// Returns a visible value, if any has a suitable type. The latest values are preferred.
    fn pick(&mut self, fits: impl Fn(Ty) -> bool) -> Option<Val> {
        let fitting: Vec<Val> = self.values.iter().filter(|v| fits(v.ty)).cloned().collect();
        self.among(&fitting)
    }
    fn among(&mut self, fitting: &[Val]) -> Option<Val> {
        let last = fitting.last()?.clone();
        Some(match self.random.below(3) {
            0 => last,
            _ => self.random.pick(fitting).clone(),
        })
    }
    /// Returns a value of at most a level.
    fn find(&mut self, ty: Ty, level: u8) -> Val {
        self.find_in(ty, |own| own <= level)
    }
    /// Returns a value of a level.
    fn find_at(&mut self, ty: Ty, level: u8) -> Val {
        if level == 0 {
            return self.find(ty, 0);
        }
        let fitting = self
            .values
            .iter()
            .filter(|v| v.ty == ty && v.level == level);
        let fitting: Vec<Val> = fitting.cloned().collect();
        if let Some(value) = self.among(&fitting) {
            return value;
        }
        self.new_on_stack(ty, level)
    }
    /// Emits a variable on the stack.
    fn new_on_stack(&mut self, ty: Ty, level: u8) -> Val {
        let name = match ty {
            Ty::Object(shape) => {
                let text = type_text(&self.shapes, shape);
                let name = self.value(format!("alloca {text}, 1"));
                self.fill(&name, shape, level);
                name
            }
            Ty::Array(shape, count) => {
                let text = type_text(&self.shapes, shape);
                let name = self.value(format!("alloca [{count} x {text}], 1"));
                for k in 0..count {
                    let at = self.value(format!("addr {text}, {name}, {k}"));
                    self.fill(&at, shape, level);
                }
                name
            }
            Ty::Cell(shape) | Ty::Row(shape, _) => {
                let count = if let Ty::Row(_, count) = ty { count } else { 1 };
                let name = self.value(format!("alloca [{count} x ptr], 1"));
                for k in 0..count {
                    let value = self.find(Ty::Object(shape), level);
                    let at = self.value(format!("addr ptr, {name}, {k}"));
                    self.store_pointer(&value.name, &at, Pointee::Object(shape));
                }
                name
            }
            Ty::Word(shape) => {
                let object = self.new_on_stack(Ty::Object(shape), level);
                self.as_word(&object)
            }
            // These hold no addresses of the stack.
            Ty::Numbers | Ty::Code | Ty::Int => return self.find(ty, 0),
        };
        self.push(name, ty, level)
    }
    fn find_in(&mut self, ty: Ty, fits: impl Fn(u8) -> bool) -> Val {
        let fitting = self.values.iter().filter(|v| v.ty == ty && fits(v.level));
        let fitting: Vec<Val> = fitting.cloned().collect();
        if self.random.below(5) > 0
            && let Some(value) = self.among(&fitting)
        {
            return value;
        }
        if let Ty::Word(shape) = ty {
            let object = self.find_in(Ty::Object(shape), fits);
            let name = self.as_word(&object);
            return Val {
                name,
                ty,
                level: object.level,
            };
        }
        Val {
            name: self.default_name(ty),
            ty,
            level: 0,
        }
    }
    /// Returns the global variable of a type.
    fn default_name(&mut self, ty: Ty) -> String {
        let prefix = self.prefix;
        match ty {
            Ty::Object(shape) => match self.random.below(3) {
                0 => format!("@{prefix}a{shape}+{}", self.shapes[shape].size()),
                _ => format!("@{prefix}s{shape}"),
            },
            Ty::Cell(shape) => format!("@{prefix}c{shape}"),
            Ty::Array(shape, _) => format!("@{prefix}a{shape}"),
            Ty::Row(shape, _) => format!("@{prefix}r{shape}"),
            Ty::Numbers => format!("@{prefix}numbers"),
            Ty::Code if !prefix.is_empty() => format!("@{prefix}code"),
            Ty::Code => format!("@code{}", self.random.below(2)),
            Ty::Int | Ty::Word(_) => unreachable!("integers are no variables"),
        }
    }

    /// Returns the name of an initial pointee. In most programs the variables lead to others that nothing else names:
    /// few objects share a pointer.
    fn initial_name(&mut self, ty: Ty) -> String {
        let prefix = self.prefix;
        match ty {
            Ty::Object(shape) if !self.is_dense => format!("@{prefix}z{shape}"),
            Ty::Cell(shape) if !self.is_dense => format!("@{prefix}y{shape}"),
            _ => self.default_name(ty),
        }
    }

    /// Emits the global variables: structures, arrays, tables, single pointers, numbers.
    fn globals(&mut self) {
        let prefix = self.prefix;
        for shape in 0..self.shapes.len() {
            let (ty, size) = (type_text(&self.shapes, shape), self.shapes[shape].size());
            for kind in ["s", "z"] {
                let mut places = Vec::new();
                self.relocations(shape, 0, &mut places);
                let list = places.join(", ");
                self.line(format!(
                    "global @{prefix}{kind}{shape}: {ty} internal = zero {size} relocations({list})"
                ));
            }
            let mut places = Vec::new();
            self.relocations(shape, 0, &mut places);
            self.relocations(shape, size, &mut places);
            let list = places.join(", ");
            self.line(format!(
                "global @{prefix}a{shape}: [2 x {ty}] internal = zero {} relocations({list})",
                2 * size
            ));
            let place = |k: u64, graph: &mut Self| {
                format!("{}: {}", 8 * k, graph.initial_name(Ty::Object(shape)))
            };
            let row: Vec<String> = (0..4).map(|k| place(k, self)).collect();
            let cell = place(0, self);
            self.line(format!(
                "global @{prefix}r{shape}: [4 x ptr] internal = zero 32 relocations({})\n\
                 global @{prefix}c{shape}: ptr internal = zero 8 relocations({cell})\n\
                 global @{prefix}y{shape}: ptr internal = zero 8 relocations(0: @{prefix}z{shape})",
                row.join(", ")
            ));
            let first = self.first_pointer(shape);
            if prefix.is_empty() {
                self.line(format!("global @offset{shape}: i64 internal = [{first}]"));
            } else {
                self.line(format!(
                    "global @hidden_offset{shape}: i64 internal = [{first}]"
                ));
            }
        }
        let one = self.random.below(2);
        self.line(format!(
            "global @{prefix}numbers: [4 x f64] internal = [0.5, 1.5, 2.5, 3.5]\n\
             global @{prefix}one: i64 internal = [{one}]\nglobal @{prefix}depth: i64 internal = [3]"
        ));
    }

    /// Returns the offset of the first pointer to a structure.
    fn first_pointer(&self, shape: usize) -> u64 {
        let own = &self.shapes[shape];
        let mut members = own.fields.iter().zip(&own.offsets);
        let found = members.find(|(field, _)| matches!(field, Field::Pointer(Pointee::Object(_))));
        let Some((_, at)) = found else {
            unreachable!("each structure has a pointer to a structure");
        };
        *at
    }

    /// Adds the relocations of a structure at an offset.
    fn relocations(&mut self, shape: usize, at: u64, list: &mut Vec<String>) {
        let own = self.shapes[shape].clone();
        for (field, offset) in own.fields.iter().zip(&own.offsets) {
            let at = at + offset;
            match *field {
                Field::Number
                | Field::Index
                | Field::Pair
                | Field::Numbers(_)
                | Field::Union(_) => {}
                Field::Pointer(pointee) => {
                    let name = self.initial_name(Ty::of(pointee));
                    list.push(format!("{at}: {name}"));
                }
                Field::Link(to) => {
                    if self.random.below(2) == 0 {
                        let name = self.initial_name(Ty::Object(to));
                        list.push(format!("{at}: {name}"));
                    }
                }
                Field::Word(to) => {
                    let name = self.initial_name(Ty::Object(to));
                    list.push(format!("{at}: {name}"));
                }
                Field::Row(to, count) => {
                    for k in 0..count {
                        let name = self.initial_name(Ty::Object(to));
                        list.push(format!("{}: {name}", at + 8 * k));
                    }
                }
                Field::Nested(inner) => self.relocations(inner, at, list),
                Field::Nests(inner, count) => {
                    let size = self.shapes[inner].size();
                    for k in 0..count {
                        self.relocations(inner, at + k * size, list);
                    }
                }
            }
        }
    }
}
