//! Teams: redundant code of all ranks, and shared work.
//!
//! Ranks see equal values, and therefore reach equal worksharing loops; rank-dependent values stay in
//! private memory until summed. Between two barriers each worksharing op has separate cells; a loop that
//! follows a loop of an equal kind may reuse its cells.

use super::{CellAccess, Cells, Distribution, SUMS, Writer};

/// The state of a team's code.
struct Team {
    /// The cells unused since the last barrier.
    unused_cells: Cells,
    /// The rank number.
    rank: String,
}

impl Writer {
    pub(super) fn team(&mut self, view: &CellAccess, depth: u32) {
        self.met("team");
        let size = match self.random.below(3) {
            0 => "0".into(),
            1 => (1 + self.random.below(4)).to_string(),
            _ => {
                let value = self.value();
                self.define(format!("and {value}, 3"))
            }
        };
        let [rank, ranks] = [0; 2].map(|_| self.name());
        self.line(format!("spmd team {size} {{ |{rank}: i64, {ranks}: i64|"));
        let visible = self.values.len();
        let mut team = Team {
            unused_cells: view.own.clone(),
            rank,
        };
        for _ in 0..1 + self.random.below(4) {
            self.worksharing_op(view, depth, &mut team, true);
        }
        self.line("yield\n}");
        self.values.truncate(visible);
    }

    /// Emits a worksharing op.
    fn worksharing_op(&mut self, view: &CellAccess, depth: u32, team: &mut Team, nests: bool) {
        match self.random.below(9) {
            0 => {
                self.met("barrier");
                self.line("barrier team");
                team.unused_cells = view.own.clone();
            }
            1 => self.single(view, depth, team),
            2 => self.single_for_all(),
            3 => self.arithmetic(),
            4 => self.rank_sums(view, depth, team),
            5 if nests => self.loop_of_worksharing(view, depth, team),
            _ => {
                let cut = self.cut_of(view, team);
                self.shared_loop(view, depth, team, cut, None);
            }
        }
    }

    fn cut_of(&mut self, view: &CellAccess, team: &Team) -> Distribution {
        self.distribution(&CellAccess {
            own: team.unused_cells.clone(),
            ..view.clone()
        })
    }

    fn schedule(&mut self) -> (String, String) {
        let chunk = 1 + self.random.below(4);
        let (feature, word, chunk) = match self.random.below(5) {
            0 | 1 => ("static loop", "static", None),
            2 => ("chunked loop", "static chunked", Some(chunk)),
            3 => ("dynamic loop", "dynamic chunked", Some(chunk)),
            _ => ("guided loop", "guided", None),
        };
        self.met(feature);
        let chunk = chunk.map_or(String::new(), |n| format!("chunk {n} "));
        (word.into(), chunk)
    }

    /// Emits a worksharing loop; `summed` holds the contributions.
    fn shared_loop(
        &mut self,
        view: &CellAccess,
        depth: u32,
        team: &mut Team,
        cut: Distribution,
        summed: Option<&str>,
    ) {
        let (_, rest) = self.split(&team.unused_cells, cut.count * cut.cells_per_iteration);
        let nowait = rest.is_some() && self.one_in(2);
        let (word, chunk) = self.schedule();
        let again = nowait && word.starts_with("static") && self.one_in(2);
        let extent = self.extent(cut.count);
        let flag = if nowait { " nowait" } else { "" };
        for _ in 0..1 + u32::from(again) {
            let index = self.name();
            self.line(format!(
                "share.for {word}{flag} {index} < {extent} {chunk}{{"
            ));
            let visible = self.values.len();
            self.values.push(index.clone());
            let own = self.iteration_cells(&team.unused_cells, &index, cut);
            self.block(&view.subview(own, None, cut.count), depth - 1);
            if let Some(place) = summed {
                let old = self.define(format!("load {place} -> i64"));
                let value = self.value();
                let new = self.define(format!("add {old}, {value}"));
                self.line(format!("store {new}, {place}"));
            }
            self.line("yield\n}");
            self.values.truncate(visible);
        }
        if again {
            self.met("same iterations on the same rank");
        }
        match rest.filter(|_| nowait) {
            Some(rest) => {
                self.met("loops without a wait between them");
                team.unused_cells = rest;
            }
            None => team.unused_cells = view.own.clone(),
        }
    }

    fn single(&mut self, view: &CellAccess, depth: u32, team: &mut Team) {
        self.met("single");
        let cells = 1 + self.random.below(team.unused_cells.cells);
        let nowait = cells < team.unused_cells.cells && self.one_in(2);
        let (own, rest) = self.split(&team.unused_cells, cells);
        self.line(if nowait {
            "single nowait {"
        } else {
            "single {"
        });
        self.region(&view.subview(own, None, 1), depth - 1);
        self.line("}");
        team.unused_cells = match rest.filter(|_| nowait) {
            Some(rest) => rest,
            None => view.own.clone(),
        };
    }

    fn single_for_all(&mut self) {
        self.met("single for all");
        let result = self.name();
        self.line(format!("{result} = single copy -> i64 {{"));
        let visible = self.values.len();
        self.arithmetic();
        let value = self.value();
        self.line(format!("yield {value}\n}}"));
        self.values.truncate(visible);
        self.values.push(result);
    }

    /// Emits a loop that adds to memory of each rank, later added to a common sum.
    fn rank_sums(&mut self, view: &CellAccess, depth: u32, team: &mut Team) {
        let place = if view.no_concurrency && self.one_in(2) {
            self.met("cell of each rank");
            let number = self.define(format!("add {}, {SUMS}", team.rank));
            self.define(format!("addr inbounds i64, %sums, {number}"))
        } else {
            self.met("sum of each rank");
            let slot = self.define("alloca private i64, 1");
            self.line(format!("store 0, {slot}"));
            slot
        };
        let cut = self.cut_of(view, team);
        self.shared_loop(view, depth, team, cut, Some(&place));
        let seed = self.seed;
        self.line(format!("critical \"lock_{seed}_0\" {{"));
        let cell = self.define("addr i64, %sums, 4");
        let (old, mine) = (
            self.define(format!("load {cell} -> i64")),
            self.define(format!("load {place} -> i64")),
        );
        let new = self.define(format!("add {old}, {mine}"));
        self.line(format!("store {new}, {cell}\nstore 0, {place}\nyield\n}}"));
    }

    /// Emits a loop around worksharing ops; an iteration begins after all ranks ended the previous one.
    fn loop_of_worksharing(&mut self, view: &CellAccess, depth: u32, team: &mut Team) {
        self.met("team's loop in a loop");
        let index = self.name();
        let times = 1 + self.random.below(3);
        self.line(format!("barrier team\nfor {index} < {times} {{"));
        team.unused_cells = view.own.clone();
        let visible = self.values.len();
        self.values.push(index);
        let view = CellAccess {
            runs: view.runs * times,
            repeated: true,
            ..view.clone()
        };
        for _ in 0..1 + self.random.below(3) {
            self.worksharing_op(&view, depth, team, false);
        }
        self.line("barrier team\nyield\n}");
        self.values.truncate(visible);
        team.unused_cells = view.own.clone();
    }
}
