//! Program positions of ops and live ranges of values.
use gradus_ir::{Body, Entity, Op, Value};

/// Positions of the ops of a body in program order.
pub(super) struct Order {
    start: Vec<u32>,
    end: Vec<u32>,
    last_use: Vec<u32>,
}

impl Order {
    /// Numbers the ops of a body.
    pub(super) fn new(body: &Body) -> Order {
        let count = body.ops.len();
        let mut order = Order {
            start: vec![0; count],
            end: vec![0; count],
            last_use: vec![0; body.values.len()],
        };
        let ops: Vec<Op> = body.walk(body.root()).collect();
        for (position, op) in (1..).zip(&ops) {
            order.start[op.index()] = position;
            for value in body.operands(*op) {
                let last = &mut order.last_use[value.index()];
                *last = position.max(*last);
            }
        }
        // Owners precede their nested ops.
        for op in &ops {
            let owner = body.parent_op(*op);
            order.end[op.index()] = match (body.next(*op), owner) {
                (Some(next), _) => order.start[next.index()],
                (None, Some(owner)) => order.end[owner.index()],
                (None, None) => ops.len() as u32 + 1,
            };
        }
        order
    }

    /// Returns the position of an op.
    pub(super) fn start(&self, op: Op) -> u32 {
        self.start[op.index()]
    }
    /// Returns whether an op after `position` uses a value.
    pub(super) fn is_used_after(&self, value: Value, position: u32) -> bool {
        self.last_use[value.index()] > position
    }
    /// Returns whether a value is used after an op and all its nested ops.
    pub(super) fn outlives(&self, value: Value, op: Op) -> bool {
        self.last_use[value.index()] >= self.end[op.index()]
    }
}
