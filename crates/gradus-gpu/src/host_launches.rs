//! Launches in host code: the run-time query for validity, and the grid under the query's result.
//!
//! ```text
//! s = __gr_launch_begin(stub, sizes); if s == 0 { …; spmd grid { …; spmd block { … } }; __gr_activity_end() }
//! ```

use gradus_analysis::Alias;
use gradus_edit::is_speculatable;
use gradus_ir::{Body, IntPredicate, Op, OpKind, Region, SpmdKind, Unit, Value};

/// The run-time query that begins a launch.
pub(crate) const LAUNCH_BEGIN: &str = "__gr_launch_begin";
/// The call that ends a launch.
const LAUNCH_END: &str = "__gr_activity_end";
/// Argument positions of the query: the kernel's stub, three sizes each of grid and block, bytes of shared
/// memory.
const GRID_ARG: usize = 1;
const BLOCK_ARG: usize = 4;
const SHARED_ARG: usize = 7;

/// A launch of a kernel whose code is in the body.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The call of the query.
    pub begin: Op,
    /// The comparison of the query's result.
    pub test: Op,
    /// The branch that runs the grid.
    pub branch: Op,
    /// The grid.
    pub grid: Op,
    /// The block of the grid.
    pub block: Op,
    /// The call that ends the launch.
    pub end: Op,
}

impl Launch {
    /// Matches the launch that a branch runs.
    pub fn match_launch(unit: &Unit, body: &Body, branch: Op) -> Option<Launch> {
        if !matches!(body.kind(branch), OpKind::If) || !body.results(branch).is_empty() {
            return None;
        }
        let test = body.def_op(body.operand(branch, 0))?;
        let equal = matches!(body.kind(test), OpKind::ICmp(IntPredicate::Eq));
        let is_zero = equal && body.as_int(unit, body.operand(test, 1)) == Some(0);
        let begin = body.def_op(body.operand(test, 0)).filter(|_| is_zero)?;
        let asked_once =
            body.uses(body.result(begin)).count() == 1 && body.uses(body.result(test)).count() == 1;
        let here = body.parent(branch);
        let beside = body.parent(begin) == here && body.parent(test) == here;
        if !is_call_of(unit, body, begin, LAUNCH_BEGIN) || !asked_once || !beside {
            return None;
        }
        let [runs, otherwise] = *body.op_regions(branch) else {
            return None;
        };
        let empty = body.first(otherwise) == body.last(otherwise);
        let is_grid = |op: &Op| is_spmd(body, *op, SpmdKind::Grid);
        let grid = body.ops_in(runs).find(is_grid).filter(|_| empty)?;
        let end = body
            .next(grid)
            .filter(|op| is_call_of(unit, body, *op, LAUNCH_END))?;
        let before = body.ops_in(runs).take_while(|op| *op != grid);
        let ends = body.next(end) == body.last(runs);
        if !ends || !before.into_iter().all(|op| is_speculatable(unit, body, op)) {
            return None;
        }
        let block = block_of(body, grid)?;
        Some(Launch {
            begin,
            test,
            branch,
            grid,
            block,
            end,
        })
    }

    /// Number of dimensions.
    pub fn dims(&self) -> usize {
        BLOCK_ARG - GRID_ARG
    }
    /// The number of blocks in a dimension, or of threads per block, if constant.
    pub fn size(&self, alias: &Alias, kind: SpmdKind, dim: usize) -> Option<i128> {
        let first = if kind == SpmdKind::Block {
            BLOCK_ARG
        } else {
            GRID_ARG
        };
        let (unit, body) = (alias.unit, alias.body);
        let size = unit.call_args(body, self.begin).get(first + dim).copied();
        body.as_int(unit, size?).map(i128::from)
    }
    /// The sizes of grid and block.
    pub fn sizes(&self, unit: &Unit, body: &Body) -> Vec<Value> {
        unit.call_args(body, self.begin)[GRID_ARG..SHARED_ARG].to_vec()
    }
    /// The ops of the grid, without the block and the terminator.
    pub fn ops_of_grid(&self, body: &Body) -> Vec<Op> {
        let region = body.op_regions(self.grid)[0];
        let own = |op: &Op| *op != self.block && !body.kind(*op).is_terminator();
        body.ops_in(region).filter(own).collect()
    }
    /// The ops of the branch before the grid.
    pub fn ops_before(&self, body: &Body) -> Vec<Op> {
        let region = body.op_regions(self.branch)[0];
        body.ops_in(region)
            .take_while(|op| *op != self.grid)
            .collect()
    }
    /// The block's code.
    pub fn code(&self, body: &Body) -> Region {
        body.op_regions(self.block)[0]
    }
}

/// The only block of a grid.
fn block_of(body: &Body, grid: Op) -> Option<Op> {
    let region = body.op_regions(grid)[0];
    let is_spmd_op = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
    let blocks: Vec<Op> = body.walk(region).filter(is_spmd_op).collect();
    match blocks[..] {
        [block] if body.parent(block) == Some(region) => Some(block),
        _ => None,
    }
}

fn is_spmd(body: &Body, op: Op, kind: SpmdKind) -> bool {
    matches!(body.kind(op), OpKind::Spmd { kind: own, .. } if *own == kind)
}

/// Returns whether an op calls the function with the given name.
pub(crate) fn is_call_of(unit: &Unit, body: &Body, op: Op, name: &str) -> bool {
    let callee = unit.callee(body, op);
    callee.is_some_and(|func| unit.functions[func].name == name)
}
