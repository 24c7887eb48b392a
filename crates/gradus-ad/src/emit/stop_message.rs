//! Messages of derivatives that end the program at run time. `gradus check` reads the code and the text back
//! (`gradus/src/check/stop.rs`).

use gradus_ir::Code;

/// Returns the line on standard error for a stop, `gradus: error[GRD0008]: …`.
pub(crate) fn stop_message(code: Code, text: &str) -> String {
    format!("gradus: error[{}]: {text}\n", code.number())
}
