//! Stage 5: the gradient of a CUDA program on the machine's processors.

use super::Kitchen;
use crate::process::Outcome;

/// Compiles and runs a program that requests and checks its own derivatives.
///
/// # Errors
/// Fails if Gradus refuses the program or if the derivatives differ.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    kitchen.write("heat.cu", include_str!("heat.cu"))?;
    println!(
        "  gradus nvcc heat.cu -o heat     (shared memory, barriers, atomicAdd; no GPU, no toolkit)\n"
    );
    kitchen.gradus(&["nvcc", "-O3", "heat.cu", "-o", "heat"], &kitchen.folder)?;
    kitchen.show(&kitchen.folder.join("heat"))
}
