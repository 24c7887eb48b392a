//! Pointers in memory that the source declares as floating-point numbers, such as `const double *p`.
//!
//! A `void *` that leads to the numbers of one caller and to a structure of another one has both as targets. A load of a
//! member of the structure then also reads the numbers, which hold no pointer. If a load can read nothing but declared
//! numbers, the program does keep pointers there, and the memory has unknown content as any other.

use crate::points_to::inclusion::constraints::{Constraint, NodeId};
use crate::points_to::inclusion::objects::Location;
use crate::points_to::inclusion::solver::Solver;

impl Solver<'_> {
    /// Gives loads of pointers that read declared numbers alone their content. Returns true if a set changed.
    pub(super) fn apply_loads_of_declared_floats(&mut self) -> bool {
        for number in 0..self.constraints.len() {
            let Constraint::Load { ptr, bytes, .. } = self.constraints[number] else {
                continue;
            };
            let targets = self.all(ptr);
            let reads_floats = |at: &Location| self.objects.get(at.object).is_declared_floats;
            if targets.iter().all(reads_floats) {
                for at in targets {
                    for place in self.moved(at, bytes) {
                        self.add_content_of_floats(place);
                    }
                }
            }
        }
        !self.work.is_empty()
    }
    /// Lets the cell at a location of declared numbers hold a pointer to memory of the caller.
    pub(super) fn add_content_of_floats(&mut self, at: Location) {
        if self.objects.get(at.object).is_declared_floats {
            let cell = self.objects.cell(at);
            let node: NodeId = self.stored_cell(at, None);
            let behind = self.objects.behind(cell.object, cell.offset, None);
            self.add(node, Location::start(behind));
        }
    }
}
