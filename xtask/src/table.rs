//! Markdown tables with aligned columns.

use std::fmt;

/// Rows below a head. Every row has the length of the head.
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns an empty table with the given head.
    pub fn new(head: &[&str]) -> Table {
        Table {
            head: head.iter().map(|&h| h.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            all()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        for (i, row) in all().enumerate() {
            for (cell, &width) in row.iter().zip(&widths) {
                write!(f, "| {cell:<width$} ")?;
            }
            f.write_str("|\n")?;
            if i == 0 {
                for &width in &widths {
                    write!(f, "|{}", "-".repeat(width + 2))?;
                }
                f.write_str("|\n")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["name", "×"]);
        table.row(vec!["a".into(), "1.25".into()]);
        table.row(vec!["longer".into()]);
        let text = table.to_string();
        assert_eq!(
            text,
            "| name   | ×    |\n|--------|------|\n| a      | 1.25 |\n| longer |      |\n"
        );
    }
}
