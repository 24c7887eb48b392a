//! Format strings of `printf` and related functions.

use gradus_ir::{Body, ConstKind, Op, Unit};

/// Returns true if a call has a known format string with `%n`, which writes the number of characters so far
/// through an argument.
pub(crate) fn has_count_conversion(unit: &Unit, body: &Body, op: Op) -> bool {
    let args = unit.call_args(body, op);
    args.into_iter().any(|arg| {
        let Some(id) = body.as_const(arg) else {
            // Not an error: only constant format strings are inspected.
            return false;
        };
        let ConstKind::Global { global, offset } = unit.constant(id).kind else {
            return false;
        };
        let global = &unit.globals[global];
        let bytes = global.init.as_ref().filter(|_| global.constant);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        bytes.is_some_and(|init| contains_percent_n(init.bytes.get(start..).unwrap_or_default()))
    })
}

/// Returns true if a format string contains `%n`, with any flags, width and length.
fn contains_percent_n(form: &[u8]) -> bool {
    const BETWEEN: &[u8] = b"-+ #'$0123456789.*hlqjzt";
    let mut rest = form.split(|byte| *byte == 0).next().unwrap_or_default();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        let length = rest.iter().take_while(|b| BETWEEN.contains(b)).count();
        rest = &rest[length..];
        match rest.split_first() {
            Some((b'n', _)) => return true,
            Some((_, after)) => rest = after,
            None => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::contains_percent_n;

    #[test]
    fn percent_n_is_recognised() {
        for form in ["%d%n", "a%hhn", "%-3ln%d", "%1$n", "%%%n\0"] {
            assert!(contains_percent_n(form.as_bytes()), "{form}");
        }
        for form in ["", "%", "100%%n", "%dn", "%5.3f %s", "a\0%n"] {
            assert!(!contains_percent_n(form.as_bytes()), "{form}");
        }
    }
}
