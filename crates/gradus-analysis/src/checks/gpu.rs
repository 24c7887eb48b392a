//! Calls of CUDA's run-time library without derivatives (GRD0013).

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use gradus_ir::Code;
use gradus_ir::externals::{ExternalFn, GpuFn};

/// Refuses device resets, and other GPU calls that work on active values.
pub(super) fn calls(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_known_calls(|call, known| {
        let (message, help) = match known {
            ExternalFn::Kernel(GpuFn::Reset) => (
                "the device reset frees memory that the derivative still reads",
                "reset the device outside the differentiated function",
            ),
            ExternalFn::Gpu if call.works_on_active_values() => (
                "GPU calls on an active path",
                "launch kernels of the same file by name, and copy with `cudaMemcpy`",
            ),
            _ => return None,
        };
        Some([variant.error(call.op, Code::Gpu, message).help(help)])
    })
}
