//! Normalises a block before the split: moves shared allocations to the block's start and erases lifetime
//! markers.

use gradus_ir::{AllocaStorage, Body, Code, Diagnostic, Op, OpKind, Unit};

/// Normalises a block.
///
/// # Errors
/// Shared memory whose size is computed inside the block.
pub(crate) fn prepare(unit: &Unit, body: &mut Body, block: Op) -> Result<(), Vec<Diagnostic>> {
    let region = body.op_regions(block)[0];
    let ops: Vec<Op> = body.walk(region).collect();
    let mut shared = Vec::new();
    let mut markers = Vec::new();
    for op in ops {
        match body.kind(op) {
            OpKind::Alloca(info) if info.storage == AllocaStorage::Shared => shared.push(op),
            OpKind::Call(_) if unit.is_lifetime_marker(body, op) => markers.push(op),
            _ => {}
        }
    }
    for &op in &shared {
        let count = body.operand(op, 0);
        let inside = body.is_defined_in(count, region);
        if inside {
            let message = "the threads of a block compute the size of shared memory";
            let finding = Diagnostic::error(Code::KernelRefused, message)
                .at(unit.span(body.ops[op].loc), "allocated here")
                .help("allocate a fixed size, or pass the size with the launch");
            return Err(vec![finding]);
        }
    }
    for op in markers {
        body.erase(op);
    }
    for op in shared.into_iter().rev() {
        if let Some(first) = body.first(region).filter(|first| *first != op) {
            body.detach(op);
            body.insert_before(first, op);
        }
    }
    Ok(())
}
