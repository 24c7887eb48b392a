//! Stage 5: the gradient of a CUDA program, on this machine's processors.

use super::Kitchen;
use crate::process::Outcome;

/// Compiles the program, which asks for its derivatives itself and checks them, and runs it.
///
/// # Errors
/// Where Gradus refuses, or the derivatives differ.
pub fn run(kitchen: &Kitchen) -> Outcome<()> {
    kitchen.write("heat.cu", include_str!("heat.cu"))?;
    println!(
        "  gradus nvcc heat.cu -o heat     (shared memory, barriers, atomicAdd; no GPU, no toolkit)\n"
    );
    kitchen.gradus(&["nvcc", "-O3", "heat.cu", "-o", "heat"], &kitchen.folder)?;
    kitchen.show(&kitchen.folder.join("heat"))
}
