//! The tape as a tree: loops, inner loops, and the values saved in them, with bars for their bytes.

use super::super::full::value;
use super::anchors::Anchors;
use super::escape::{escaped, with_code};
use super::sized;
use gradus_pipeline::report::{Tape, TapeLoop, TapeRow, TapeSize};
use std::fmt::Write;

/// A loop of the tree; the root is the function.
#[derive(Default)]
struct Nest<'a> {
    size: TapeSize,
    loops: Vec<(&'a TapeLoop, Nest<'a>)>,
    rows: Vec<&'a TapeRow>,
}

impl<'a> Nest<'a> {
    fn add(&mut self, row: &'a TapeRow, loops: &'a [TapeLoop]) {
        self.size.add_row(row);
        let Some((first, inner)) = loops.split_first() else {
            self.rows.push(row);
            return;
        };
        let is_same = |(known, _): &(&TapeLoop, Nest)| {
            (&known.location, &known.trips) == (&first.location, &first.trips)
        };
        let at = match self.loops.iter().position(is_same) {
            Some(at) => at,
            None => {
                self.loops.push((first, Nest::default()));
                self.loops.len() - 1
            }
        };
        self.loops[at].1.add(row, inner);
    }

    fn sort(&mut self) {
        self.loops
            .sort_by(|(_, a), (_, b)| b.size.weight().total_cmp(&a.size.weight()));
        self.loops.iter_mut().for_each(|(_, nest)| nest.sort());
    }
}

/// Returns the tree, with links to source lines.
pub(super) fn nest(tape: &Tape, anchors: Anchors<'_>) -> String {
    if tape.rows.is_empty() {
        return "<p>The tape is empty.</p>\n".to_string();
    }
    let mut root = Nest::default();
    for row in &tape.rows {
        root.add(row, &row.loops);
    }
    root.sort();
    let mut html = "<ul class=\"nest\">\n".to_string();
    level(
        &mut html,
        &root,
        (tape.size().weight().max(1.0), 0),
        anchors,
    );
    html + "</ul>\n"
}

// Writing to a string does not fail.
fn level(html: &mut String, nest: &Nest<'_>, (all, depth): (f64, usize), anchors: Anchors<'_>) {
    let share = |size: &TapeSize| 100.0 * size.weight() / all;
    for (lp, inner) in &nest.loops {
        let name = match &lp.location {
            Some(at) => format!("loop in {}", anchors.place(at)),
            None => "copied array".to_string(),
        };
        let _ = writeln!(
            html,
            "<li class=\"loop\"><div class=\"row\"><span class=\"size\"><span class=\"track tape\" style=\"--w:{:.2}%\"></span>{}</span>\
             <span class=\"what\" style=\"--depth:{depth}\">{name} <span class=\"muted\">× {}</span></span></div>\n<ul>",
            share(&inner.size),
            sized("tape-loop", &inner.size),
            escaped(&lp.trips)
        );
        level(html, inner, (all, depth + 1), anchors);
        *html += "</ul></li>\n";
    }
    for row in &nest.rows {
        let at = row.location.as_ref();
        let at = at.map_or("unknown line".to_string(), |at| anchors.place(at));
        let remedy = match &row.remedy {
            Some(remedy) => format!(" <span class=\"remedy\">{}</span>", with_code(remedy)),
            None => String::new(),
        };
        let _ = writeln!(
            html,
            "<li class=\"value\"><div class=\"row\"><span class=\"size\"><span class=\"track tape\" style=\"--w:{:.2}%\"></span>{}</span>\
             <span class=\"what\" style=\"--depth:{depth}\">{at} {} <span class=\"muted\">{} ({})</span><br>{}{remedy}</span></div></li>",
            share(&row.size()),
            sized("tape-row", &row.size()),
            with_code(&value(row)),
            escaped(&row.formula),
            escaped(&row.storage),
            with_code(&row.why)
        );
    }
}
