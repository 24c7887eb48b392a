//! Parallel loops: up to three dimensions, reductions of all kinds.

use super::{CellAccess, Distribution, Writer};

/// A reduction: operator, initial value, and operand kind.
#[derive(Clone, Copy)]
struct Reduction {
    word: &'static str,
    start: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    /// Integers as floats, with exact sums.
    Float,
    /// The maximum, as a user-defined region.
    Own,
}

const fn reduction(word: &'static str, start: &'static str, kind: Kind) -> Reduction {
    Reduction { word, start, kind }
}

const REDUCTIONS: &[Reduction] = &[
    reduction("add", "17", Kind::Integer),
    reduction("mul", "3", Kind::Integer),
    reduction("xor", "5", Kind::Integer),
    reduction("or", "0", Kind::Integer),
    reduction("and", "-1", Kind::Integer),
    reduction("max", "-40", Kind::Integer),
    reduction("min", "40", Kind::Integer),
    reduction("umax", "7", Kind::Integer),
    reduction("umin", "9000", Kind::Integer),
    reduction("fadd", "2.0", Kind::Float),
    reduction("fmax", "1.0", Kind::Float),
    reduction("fmin", "900.0", Kind::Float),
    reduction("custom", "6", Kind::Own),
];

impl Writer {
    pub(super) fn parallel_loop(&mut self, view: &CellAccess, depth: u32) {
        self.met("parallel loop");
        let cut = self.distribution(view);
        let sizes = self.sizes(cut.count);
        let narrow = sizes.len() == 1 && self.one_in(4);
        let reductions = self.reductions();
        let (mut heads, mut indices) = (Vec::new(), Vec::new());
        for &most in &sizes {
            let index = self.name();
            let extent = match narrow {
                true => format!("i32 {most}"),
                false => self.extent(most),
            };
            heads.push(format!("{index} < {extent}"));
            indices.push(index);
        }
        let starts = reductions.iter().map(|r| format!("{} {}", r.word, r.start));
        let starts: Vec<String> = starts.collect();
        let names: Vec<String> = reductions.iter().map(|_| self.name()).collect();
        let (mut results, mut reduce) = (String::new(), String::new());
        if !names.is_empty() {
            self.met("reduction");
            results = format!("{} = ", names.join(", "));
            reduce = format!(" reduce({})", starts.join(", "));
        }
        let grain = match self.one_in(6) {
            true => {
                self.met("grain");
                "grain 3 "
            }
            false => "",
        };
        let heads = heads.join(", ");
        self.line(format!("{results}par.for {grain}{heads}{reduce} {{"));
        if narrow {
            self.met("narrow index");
            indices[0] = self.define(format!("zext {} -> i64", indices[0]));
        }
        self.iteration(view, depth, (&indices, &sizes), cut, &reductions);
        for (name, reduction) in std::iter::zip(names, &reductions) {
            match reduction.kind {
                Kind::Float => self.define_visible(format!("fptoui {name} -> i64")),
                _ => self.values.push(name),
            }
        }
    }

    /// Returns the extents of a loop of at most `count` iterations.
    fn sizes(&mut self, count: u32) -> Vec<u32> {
        let inner = 2 + self.random.below(3);
        match self.random.below(5) {
            0 if count >= 2 * inner => {
                self.met("three dimensions");
                vec![count / inner / 2, 2, inner]
            }
            1 if count >= inner => {
                self.met("two dimensions");
                vec![count / inner, inner]
            }
            _ => vec![count],
        }
    }

    fn reductions(&mut self) -> Vec<Reduction> {
        let count = self.random.below(3);
        let picked = (0..count).map(|_| *self.random.pick(REDUCTIONS));
        picked.collect()
    }

    /// Emits an iteration, up to the end of the loop.
    fn iteration(
        &mut self,
        view: &CellAccess,
        depth: u32,
        (indices, sizes): (&[String], &[u32]),
        cut: Distribution,
        reductions: &[Reduction],
    ) {
        let visible = self.values.len();
        let mut number = indices[0].clone();
        for (index, size) in std::iter::zip(indices, sizes).skip(1) {
            let row = self.define(format!("mul {number}, {size}"));
            number = self.define(format!("add {row}, {index}"));
        }
        self.values.extend(indices.iter().cloned());
        self.values.push(number.clone());
        let own = self.iteration_cells(&view.own, &number, cut);
        let (_, rest) = self.split(&view.own, cut.count * cut.cells_per_iteration);
        let part = view.subview(own, rest, cut.count);
        self.block(&part, depth - 1);
        let given: Vec<String> = reductions.iter().map(|r| self.contribution(*r)).collect();
        self.line(format!("yield {}", given.join(", ")));
        self.values.truncate(visible);
        let mut end = String::from("}");
        for reduction in reductions {
            if reduction.kind == Kind::Own {
                let [a, b, more, most] = [0; 4].map(|_| self.name());
                end.push_str(&format!(
                    " {{ |{a}: i64, {b}: i64|\n{more} = icmp ugt {a}, {b}\n\
                     {most} = select {more}, {a}, {b}\nyield {most}\n}}"
                ));
            }
        }
        self.line(end);
    }

    fn contribution(&mut self, reduction: Reduction) -> String {
        match reduction.kind {
            Kind::Integer => self.value(),
            Kind::Float => {
                self.met("float reduction");
                self.small_float()
            }
            Kind::Own => {
                self.met("own reduction");
                self.value()
            }
        }
    }
}
