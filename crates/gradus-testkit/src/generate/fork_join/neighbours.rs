//! Two consecutive parallel loops; the second reads results of the first: by an equal index, by another
//! index, by an index array, by rows, or under conditions. Some pairs may be fused, and most must not be.

use super::{CellAccess, Cells, Writer};

/// The maximum number of iterations of such a loop.
const ITERATIONS_MAX: u32 = 20;

/// A loop of the pair.
struct LoopOfPair<'a> {
    index: &'a str,
    /// The line of the shared cells accessed by an iteration.
    place: &'a str,
    /// The number of cells per line.
    row: u32,
    first: bool,
    /// Set if two iterations access each line, and the later one writes.
    iterations_per_line: Option<u32>,
}

impl Writer {
    /// Emits two loops over the view's own cells: some written by the first, as many written by the second,
    /// and an index array.
    pub(super) fn neighbours(&mut self, view: &CellAccess) {
        let most = (view.own.cells / 2).min(ITERATIONS_MAX);
        if most < 2 {
            return self.arithmetic();
        }
        self.met("loops that follow each other");
        let row = 1 + self.random.below(2.min(most / 2));
        let count = most / row;
        let (result, rest) = self.split(&view.own, count * row);
        let Some(rest) = rest else {
            return self.arithmetic();
        };
        // An indirect access is distinguished from other memory only if its target is a separate object.
        let listed = !view.repeated && self.one_in(2);
        let between = match listed {
            true => self.filled_array(view, count * row, None),
            false => self.split(&rest, count * row).0,
        };
        let twice = (self.one_in(2) && count % 2 == 0).then_some(count / 2);
        let list = listed.then(|| self.filled_array(view, count, Some(twice.unwrap_or(count))));
        let guard = self.one_in(4).then(|| self.condition());
        let other_guard = match self.one_in(8) {
            true => Some(self.condition()),
            false => guard.clone(),
        };
        let extent = self.extent(count);
        let other = if self.one_in(10) {
            count.to_string()
        } else {
            extent.clone()
        };
        let how = self.random.below(5);
        let same = self.one_in(2);
        let other_how = if same { how } else { self.random.below(5) };
        let loops = [
            (&extent, guard, how, true),
            (&other, other_guard, other_how, false),
        ];
        for (extent, guard, how, first) in loops {
            if let Some(guard) = &guard {
                self.line(format!("if {guard} {{"));
            }
            let index = self.name();
            self.line(format!("par.for {index} < {extent} {{"));
            let visible = self.values.len();
            self.values.push(index.clone());
            let by_list = list.as_ref().filter(|_| matches!(how, 2 | 3));
            let place = self.shared_cell_index(&index, (count, how), by_list);
            let lines = LoopOfPair {
                index: &index,
                place: &place,
                row,
                first,
                iterations_per_line: twice.filter(|_| by_list.is_some()),
            };
            self.lines(&lines, [&between, &result]);
            if let Some(list) = by_list.filter(|_| first && twice.is_none() && self.one_in(4)) {
                self.advance_index(list, &index, &place, count);
            }
            self.values.truncate(visible);
            self.line("yield\n}");
            if guard.is_some() {
                self.line("yield\n} else {\nyield\n}");
            }
            if first && self.one_in(3) {
                let cell = self.cell(&between);
                let value = self.value();
                self.line(format!("store {value}, {cell}"));
            }
        }
    }

    /// Makes an iteration's entry of an index array point to the next line.
    fn advance_index(&mut self, list: &Cells, index: &str, place: &str, count: u32) {
        let next = self.define(format!("add {place}, 1"));
        let next = self.define(format!("urem {next}, {count}"));
        let cell = self.define(format!("addr inbounds i64, {}, {index}", list.base));
        self.line(format!("store {next}, {cell}"));
    }

    /// Returns stack cells that hold some numbers, or a rotation of the numbers below `most`.
    fn filled_array(&mut self, view: &CellAccess, cells: u32, most: Option<u32>) -> Cells {
        let private = if view.forked { "private " } else { "" };
        let base = self.define(format!("alloca {private}[{cells} x i64], 1"));
        let turn = match most {
            Some(most) if most == cells => self.random.below(cells),
            _ => 0,
        };
        let index = self.name();
        self.line(format!("for {index} < {cells} {{"));
        let moved = self.define(format!("add {index}, {turn}"));
        let number = match most {
            Some(most) => self.define(format!("urem {moved}, {most}")),
            None => self.define(format!("mul {moved}, 9")),
        };
        let cell = self.define(format!("addr inbounds i64, {base}, {index}"));
        self.line(format!("store {number}, {cell}\nyield\n}}"));
        Cells { base, cells }
    }

    /// Returns the index of the shared cells accessed by an iteration: one of five injective mappings.
    fn shared_cell_index(
        &mut self,
        index: &str,
        (count, how): (u32, u32),
        list: Option<&Cells>,
    ) -> String {
        match (how, list) {
            (0, _) => self.define(format!("sub {}, {index}", count - 1)),
            (1, _) => {
                let next = self.define(format!("add {index}, 1"));
                self.define(format!("urem {next}, {count}"))
            }
            (2 | 3, Some(list)) => {
                let cell = self.define(format!("addr inbounds i64, {}, {index}", list.base));
                self.define(format!("load {cell} -> i64"))
            }
            _ => index.to_string(),
        }
    }

    /// Emits the statements for each cell of an iteration's line, sometimes under a condition.
    fn lines(&mut self, lines: &LoopOfPair<'_>, [between, result]: [&Cells; 2]) {
        let LoopOfPair {
            index, place, row, ..
        } = *lines;
        let inner = (row > 1).then(|| self.name());
        if let Some(inner) = &inner {
            self.line(format!("for {inner} < {row} {{"));
        }
        let column = inner.clone().unwrap_or_else(|| "0".into());
        let mut cell = |of: &Cells, line: &str| {
            let start = self.define(format!("mul nsw {line}, {row}"));
            let at = self.define(format!("add nsw {start}, {column}"));
            self.define(format!("addr inbounds i64, {}, {at}", of.base))
        };
        let (shared, own) = (cell(between, place), cell(result, index));
        let condition = match lines.iterations_per_line {
            Some(half) if lines.first => Some(self.define(format!("icmp uge {index}, {half}"))),
            _ => self
                .one_in(4)
                .then(|| self.define(format!("icmp ugt {place}, 2"))),
        };
        if let Some(condition) = &condition {
            self.line(format!("if {condition} {{"));
        }
        let visible = self.values.len();
        if lines.first {
            if self.one_in(3) {
                self.define_visible(format!("load {own} -> i64"));
            }
            let value = self.value();
            let value = self.define(format!("xor {value}, {index}"));
            self.line(format!("store {value}, {shared}"));
        } else {
            self.define_visible(format!("load {shared} -> i64"));
            let value = self.value();
            let value = self.define(format!("add {value}, {index}"));
            self.line(format!("store {value}, {own}"));
        }
        self.values.truncate(visible);
        if condition.is_some() {
            self.line("yield\n} else {\nyield\n}");
        }
        if inner.is_some() {
            self.line("yield\n}");
        }
    }
}
