//! Floating-point formats without derivatives (GRD0032).

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use crate::type_analysis::type_map::LaneKind;
use gradus_ir::{Code, FloatKind};

/// Refuses active values of other formats than IEEE's and x87's.
pub(super) fn values(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_ops(|op| {
        let mut found = Vec::new();
        for value in variant.active_results(op) {
            let lanes = variant.facts.words.lanes(variant.func, value).iter();
            let odd = lanes.into_iter().find_map(|lane| match lane.kind {
                LaneKind::Float(kind) if !is_supported(kind) => Some(kind),
                _ => None,
            });
            if let Some(kind) = odd {
                let message = format!("active values have the unsupported format {kind:?}");
                let error = variant.error(op, Code::FloatFormat, message);
                found.push(error.help("use double or float"));
            }
        }
        found
    })
}

fn is_supported(kind: FloatKind) -> bool {
    !matches!(kind, FloatKind::PpcF128)
}
