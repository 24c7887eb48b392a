//! Parallel loops over the columns of a matrix, each with a loop down the column: input for column
//! interchange.

use super::{CellAccess, Writer};

impl Writer {
    /// Emits a loop over columns of the view's own cells, with a number for each in further cells.
    pub(super) fn columns(&mut self, view: &CellAccess) {
        let width = 1 + self.random.below(40);
        let rows = view.own.cells / width;
        if rows < 3 || view.runs * view.own.cells > super::EXECUTIONS_MAX {
            return self.arithmetic();
        }
        self.met("columns");
        let height = 1 + self.random.below(rows - 1);
        let (matrix, rest) = self.split(&view.own, width * height);
        let Some(rest) = rest else {
            return self.arithmetic();
        };
        let (result, _) = self.split(&rest, width);
        let (extent, down) = (self.extent(width), self.extent(height));
        let start = self.value();
        let (column, row) = (self.name(), self.name());
        self.line(format!("par.for {column} < {extent} {{"));
        let visible = self.values.len();
        self.values.push(column.clone());
        let own = self.define(format!("addr inbounds i64, {}, {column}", result.base));
        let first = match self.random.below(3) {
            0 => start,
            1 => self.define(format!("mul {column}, 3")),
            _ => self.define(format!("load {own} -> i64")),
        };
        let carries = self.one_in(2);
        let (carried, sum) = (self.name(), self.name());
        match carries {
            true => self.line(format!(
                "{sum} = for {row} < {down} iter({carried} = {first}) {{"
            )),
            false => self.line(format!("for {row} < {down} {{")),
        }
        let inside = self.values.len();
        self.values.push(row.clone());
        let before = self.define(format!("mul nsw {row}, {width}"));
        let at = self.define(format!("add nsw {before}, {column}"));
        let cell = self.define(format!("addr inbounds i64, {}, {at}", matrix.base));
        self.define_visible(format!("load {cell} -> i64"));
        if self.one_in(2) {
            let value = self.value();
            let value = self.define(format!("xor {value}, {first}"));
            self.line(format!("store {value}, {cell}"));
        }
        let value = self.value();
        if carries {
            let turned = self.define(format!("mul {carried}, 5"));
            let next = self.define(format!("add {turned}, {value}"));
            self.line(format!("yield {next}\n}}"));
        } else {
            let old = self.define(format!("load {own} -> i64"));
            let new = self.define(format!("sub {value}, {old}"));
            self.line(format!("store {new}, {own}\nyield\n}}"));
        }
        self.values.truncate(inside);
        if carries {
            let value = self.define(format!("add {sum}, {first}"));
            self.line(format!("store {value}, {own}"));
        }
        self.values.truncate(visible);
        self.line("yield\n}");
    }
}
