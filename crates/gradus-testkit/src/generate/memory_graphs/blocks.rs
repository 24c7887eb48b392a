//! Memory programs: large blocks, walks by incremented pointers, copies onto the same memory, distances that move
//! pointers. The analysis has limits (offsets per set, cells per object, elements that leave an array), and larger
//! memory than theirs is treated less exactly.

use super::shapes::{Field, Pointee, type_text};
use super::{Graph, Ty, Val};

impl Graph<'_> {
    /// Emits one of the statements of this file.
    pub(super) fn block_statement(&mut self) {
        match self.random.below(10) {
            9 => self.walk_to_neighbour(),
            0 | 8 => self.fill_by_pointer(),
            1 => self.shift_row(),
            2 => self.distance_in_memory(),
            3 => self.distance_between_objects(),
            4 => self.moved_after_realloc(),
            5 => self.exchange_if_equal(),
            6 => self.code_from_table(),
            _ if self.random.below(4) == 0 => self.large_block(),
            _ => self.by_value(),
        }
    }

    /// Returns a visible table, or the global one.
    fn row(&mut self) -> (Val, usize, u64) {
        let shape = self.shape();
        let row = match self.pick(|ty| matches!(ty, Ty::Row(..))) {
            Some(row) => row,
            None => self.find(Ty::Row(shape, 4), 9),
        };
        let Ty::Row(to, count) = row.ty else {
            unreachable!("the picked value is a table");
        };
        (row, to, count)
    }

    /// Emits stores to all pointers of a table through a pointer that a loop increments or decrements.
    fn fill_by_pointer(&mut self) {
        self.note("table filled by a moving pointer");
        let (row, to, count) = self.row();
        let value = self.find(Ty::Object(to), row.level);
        let (end, i, at) = (self.name(), self.name(), self.name());
        let step = match self.random.below(2) {
            0 => 1,
            _ => -1,
        };
        let start = match step {
            1 => row.name.clone(),
            _ => self.value(format!("addr ptr, {}, {}", row.name, count - 1)),
        };
        self.line(format!("{end} = for {i} < {count} iter({at} = {start}) {{"));
        self.store_pointer(&value.name, &at, Pointee::Object(to));
        let next = self.value(format!("addr ptr, {at}, {step}"));
        self.line(format!("yield {next}\n}}"));
        let back = self.value(format!("addr ptr, {end}, {}", -step));
        self.push(back, Ty::Cell(to), row.level);
    }

    /// Emits a walk over a table in a structure that ends at the pointer behind or before the table.
    fn walk_to_neighbour(&mut self) {
        let shape = self.shape();
        let own = self.shapes[shape].fields.clone();
        let pairs = own.windows(2).enumerate();
        let found = pairs.filter_map(|(k, pair)| match pair {
            [Field::Row(_, count), Field::Pointer(Pointee::Object(to))] => {
                Some((k, *count, 1, *to))
            }
            [Field::Pointer(Pointee::Object(to)), Field::Row(_, count)] => {
                Some((k + 1, *count, -1, *to))
            }
            _ => None,
        });
        let found: Vec<(usize, u64, i64, usize)> = found.collect();
        if found.is_empty() {
            return;
        }
        self.note("walk to the member beside a table");
        let (field, count, step, to) = *self.random.pick(&found);
        let object = self.find(Ty::Object(shape), 9);
        let row = self.member_address(&object.name, shape, field);
        let first = if step > 0 { 0 } else { count - 1 };
        let start = self.value(format!("addr ptr, {row}, {first}"));
        let (end, i, at) = (self.name(), self.name(), self.name());
        self.line(format!("{end} = for {i} < {count} iter({at} = {start}) {{"));
        let next = self.value(format!("addr ptr, {at}, {step}"));
        self.line(format!("yield {next}\n}}"));
        self.push(end, Ty::Cell(to), object.level);
    }

    /// Emits a copy of a table onto itself, one element further.
    fn shift_row(&mut self) {
        self.note("copy onto the same memory");
        let (row, _, count) = self.row();
        let second = self.value(format!("addr inbounds ptr, {}, 1", row.name));
        let (to, from) = match self.random.below(2) {
            0 => (row.name, second),
            _ => (second, row.name),
        };
        let size = 8 * (count - 1);
        self.line(format!(
            "call @llvm.memmove.p0.p0.i64({to}, {from}, {size}, false)"
        ));
    }

    /// Emits the distance of an element from the start of its array, stored as a number.
    fn distance_in_memory(&mut self) {
        self.note("distance stored in memory");
        let shape = self.shape();
        let array = self.find(Ty::Array(shape, 2), 9);
        let element = self.element_of_array(&array.name, shape, 2);
        let (a, b) = (
            self.value(format!("ptrtoint {element} -> i64")),
            self.value(format!("ptrtoint {} -> i64", array.name)),
        );
        let distance = self.value(format!("sub {a}, {b}"));
        let slot = self.value("alloca i64, 1");
        self.line(format!("store {distance}, {slot}"));
        let read = self.value(format!("load {slot} -> i64"));
        let at = match self.random.below(2) {
            0 => self.value(format!("addr i8, {}, {read}", array.name)),
            _ => {
                let sum = self.value(format!("add {b}, {read}"));
                self.value(format!("inttoptr {sum} -> ptr"))
            }
        };
        self.push(at, Ty::Object(shape), array.level);
    }

    /// Emits `a + (b - a)`, which is `b`.
    fn distance_between_objects(&mut self) {
        self.note("distance between objects");
        let shape = self.shape();
        let base = self.find(Ty::Object(shape), 9);
        let goal = self.find(Ty::Object(shape), 9);
        let (a, b) = (
            self.value(format!("ptrtoint {} -> i64", base.name)),
            self.value(format!("ptrtoint {} -> i64", goal.name)),
        );
        let distance = self.value(format!("sub {b}, {a}"));
        let at = self.value(format!("addr i8, {}, {distance}", base.name));
        self.push(at, Ty::Object(shape), goal.level);
    }

    /// Emits a pointer into a block that moves with the block.
    fn moved_after_realloc(&mut self) {
        self.note("pointer into a reallocated block");
        let shape = self.shape();
        let size = self.shapes[shape].size();
        let old = self.value(format!("call @malloc({size})"));
        self.fill(&old, shape, 0);
        let field = self.random.below(self.shapes[shape].fields.len() as u32) as usize;
        let inner = self.member_address(&old, shape, field);
        let (a, b) = (
            self.value(format!("ptrtoint {inner} -> i64")),
            self.value(format!("ptrtoint {old} -> i64")),
        );
        let distance = self.value(format!("sub {a}, {b}"));
        let new = self.value(format!("call @realloc({old}, {})", 2 * size));
        let at = self.value(format!("addr i8, {new}, {distance}"));
        let back = self.value(format!(
            "addr i8, {at}, -{}",
            self.shapes[shape].offsets[field]
        ));
        self.push(new, Ty::Object(shape), 0);
        self.push(back, Ty::Object(shape), 0);
    }

    /// Emits a conditional atomic exchange.
    fn exchange_if_equal(&mut self) {
        self.note("atomic exchange");
        let shape = self.shape();
        let cell = self.find(Ty::Cell(shape), 9);
        let expected = self.find(Ty::Object(shape), 9);
        let value = self.find(Ty::Object(shape), cell.level);
        let both = self.value(format!(
            "cmpxchg seq_cst failure monotonic {}, {}, {}",
            cell.name, expected.name, value.name
        ));
        let old = self.value(format!("extractvalue [0] {both}"));
        let frozen = self.value(format!("freeze {old}"));
        self.push(frozen, Ty::Object(shape), cell.level);
    }

    /// Emits a callback from a table of functions.
    fn code_from_table(&mut self) {
        if !self.prefix.is_empty() {
            return;
        }
        self.note("table of functions");
        let index = self.int();
        let at = self.value(format!("addr inbounds ptr, @codes, {index}"));
        let code = self.load_pointer(&at, Pointee::Code);
        self.push(code, Ty::Code, 0);
    }

    /// Emits a structure that passes through a value of its type and a choice.
    fn by_value(&mut self) {
        self.note("structure by value");
        let shape = self.shape();
        let ty = type_text(&self.shapes, shape);
        let first = self.find(Ty::Object(shape), 0);
        let second = self.find(Ty::Object(shape), 0);
        let int = self.int();
        let odd = self.value(format!("icmp ne {int}, 0"));
        let (a, b) = (
            self.value(format!("load {} -> {ty}", first.name)),
            self.value(format!("load {} -> {ty}", second.name)),
        );
        let chosen = self.value(format!("select {odd}, {a}, {b}"));
        let goal = self.value(format!("call @malloc({})", self.shapes[shape].size()));
        self.line(format!("store {chosen}, {goal}"));
        self.push(goal, Ty::Object(shape), 0);
    }

    /// Emits a table of many pointers, with stores at many constant offsets, through pointers with many possible
    /// offsets, and a copy of it.
    fn large_block(&mut self) {
        self.note("large table");
        let shape = self.shape();
        let count = 40 + 30 * u64::from(self.random.below(5));
        let bytes = 8 * count;
        let block = self.value(format!("call @malloc({bytes})"));
        let value = self.find(Ty::Object(shape), 0);
        let (i, at) = (self.name(), self.name());
        self.line(format!(
            "for {i} < {count} {{\n{at} = addr ptr, {block}, {i}"
        ));
        self.store_pointer(&value.name, &at, Pointee::Object(shape));
        self.line("yield\n}");
        let int = self.int();
        let odd = self.value(format!("icmp ne {int}, 0"));
        let stride = *self.random.pick(&[8, 16]);
        let mut place = block.clone();
        for _ in 0..*self.random.pick(&[3, 12, 70]).min(&(count / 2 - 1)) {
            let next = self.value(format!("addr i8, {place}, {stride}"));
            place = match self.random.below(3) {
                0 => next,
                _ => self.value(format!("select {odd}, {next}, {place}")),
            };
        }
        let value = self.find(Ty::Object(shape), 0);
        self.store_pointer(&value.name, &place, Pointee::Object(shape));
        for _ in 0..*self.random.pick(&[2, 20]) {
            let value = self.find(Ty::Object(shape), 0);
            let k = self.random.below(count as u32);
            let at = self.value(format!("addr ptr, {block}, {k}"));
            self.store_pointer(&value.name, &at, Pointee::Object(shape));
        }
        let copy = self.value(format!("call @malloc({bytes})"));
        self.copy_bytes(&copy, &block, bytes);
        for row in [block, copy] {
            let last = self.value(format!("addr ptr, {row}, {}", count - 4));
            self.push(row, Ty::Row(shape, 4), 0);
            self.push(last, Ty::Row(shape, 4), 0);
        }
    }
}
