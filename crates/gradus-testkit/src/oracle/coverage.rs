//! Coverage of random programs, as a table without empty cells.
//!
//! Ops, nested structured ops and library functions are counted in the programs; features known to the
//! generator alone ([`FEATURES`]) are counted as reported.

use crate::generate::math_names;
use crate::generate::{FEATURES, WideProgram};
use gradus_ir::{Body, CastOp, Op, OpKind, Unit, parallel_ops, scalar_ops};
use std::collections::BTreeMap;

/// The structured ops.
const STRUCTURES: &[&str] = &["if", "switch", "for", "loop"];
/// The nesting depth of a cell.
const NESTING_DEPTH: usize = 3;

/// The count of each cell.
#[derive(Clone, Debug)]
pub struct Coverage {
    cells: BTreeMap<String, u64>,
}

/// Returns the place of the test for an op that IR programs do not contain.
fn tested_elsewhere(kind: &OpKind) -> Option<&'static str> {
    use OpKind::*;
    match kind {
        Invoke(_) | LandingPad(_) | Resume => Some("C++ programs with exceptions"),
        parallel_ops!() => Some("pages of parallel programs"),
        Foreign(_) => Some("tests of the import: foreign LLVM instructions"),
        Cast(CastOp::AddrSpaceCast | CastOp::PtrToAddr) => Some("programs for other machines"),
        Cast(CastOp::IntToPtr) => Some("refused on active memory"),
        scalar_ops!()
        | Freeze
        | Alloca(_)
        | Load(_)
        | Store(_)
        | Addr { .. }
        | AtomicRmw(..)
        | CmpXchg { .. }
        | Fence { .. }
        | Call(_)
        | If
        | Switch(_)
        | Loop { .. }
        | For { .. }
        | Yield
        | Repeat
        | Return
        | Unreachable => None,
    }
}

impl Default for Coverage {
    /// Returns all cells with count zero.
    fn default() -> Self {
        let here = OpKind::prototypes();
        let here = here.iter().filter(|kind| tested_elsewhere(kind).is_none());
        let mut cells: Vec<String> = here.map(|kind| format!("op {}", kind.mnemonic())).collect();
        let mut paths: Vec<String> = vec!["nest".into()];
        for _ in 0..NESTING_DEPTH {
            let longer = |path: &String| {
                let path = path.clone();
                STRUCTURES.iter().map(move |s| format!("{path} {s}"))
            };
            paths = paths.iter().flat_map(longer).collect();
        }
        cells.extend(paths);
        cells.extend(FEATURES.iter().map(|feature| format!("has {feature}")));
        cells.extend(math_names().map(|name| format!("calls {name}")));
        Coverage {
            cells: cells.into_iter().map(|cell| (cell, 0)).collect(),
        }
    }
}

impl Coverage {
    /// Counts the contents of some programs, given as a unit.
    pub fn count(&mut self, unit: &Unit, programs: &[WideProgram]) {
        for feature in programs.iter().flat_map(|p| &p.contents) {
            self.count_cell(format!("has {feature}"));
        }
        for (_, function) in unit.functions.iter() {
            if let Some(body) = &function.body {
                self.count_body(unit, body);
            }
        }
    }

    fn count_cell(&mut self, cell: String) {
        if let Some(count) = self.cells.get_mut(&cell) {
            *count += 1;
        }
    }

    fn count_body(&mut self, unit: &Unit, body: &Body) {
        let mut open: Vec<(Op, Vec<&'static str>)> = Vec::new();
        open.extend(body.ops_in(body.root()).map(|op| (op, Vec::new())));
        while let Some((op, around)) = open.pop() {
            let kind = body.kind(op);
            self.count_cell(format!("op {}", kind.mnemonic()));
            if let OpKind::Call(_) = kind
                && let Some(callee) = unit.callee(body, op)
            {
                self.count_cell(format!("calls {}", unit.functions[callee].name));
            }
            let structure = STRUCTURES.iter().find(|s| **s == kind.mnemonic());
            let Some(structure) = structure else { continue };
            let mut path = around.clone();
            path.push(structure);
            if let Some(start) = path.len().checked_sub(NESTING_DEPTH) {
                self.count_cell(format!("nest {}", path[start..].join(" ")));
            }
            for region in body.op_regions(op) {
                open.extend(body.ops_in(*region).map(|inner| (inner, path.clone())));
            }
        }
    }

    /// Returns the cells with count zero.
    pub fn empty_cells(&self) -> Vec<&str> {
        let empty = self.cells.iter().filter(|(_, count)| **count == 0);
        empty.map(|(cell, _)| cell.as_str()).collect()
    }

    /// Returns the table, a cell per line.
    pub fn table(&self) -> String {
        let line = |(cell, count): (&String, &u64)| format!("{count:9}  {cell}\n");
        self.cells.iter().map(line).collect()
    }
}
