//! Reduces a C program that shows a failure, line by line, while the failure persists.
//!
//! Programs have a statement or a brace per line. To a fixpoint: a block is removed with its head, or
//! unwrapped; a line is removed. Long ranges are tried first, so that large parts disappear in few steps
//! (delta debugging, Zeller and Hildebrandt 2002, on the tree of blocks).

/// Returns the smallest source found for which `shows` holds, as for `source`.
pub fn reduce_text(source: &str, mut shows: impl FnMut(&str) -> bool) -> String {
    let mut lines: Vec<String> = source.lines().map(String::from).collect();
    loop {
        let before = lines.len();
        let mut length = lines.len() / 2;
        while length > 0 {
            let mut start = 0;
            while start + length <= lines.len() {
                if !try_without(&mut lines, start, start + length, &mut shows) {
                    start += (length / 2).max(1);
                }
            }
            length /= 2;
        }
        let mut at = 0;
        while at < lines.len() {
            if !unwrap_block(&mut lines, at, &mut shows) {
                at += 1;
            }
        }
        if lines.len() == before {
            return lines.join("\n") + "\n";
        }
    }
}

fn joined(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// Returns the change in brace depth after a line, and true if the line closes more than it opened before.
fn brace_depth(line: &str) -> (i32, bool) {
    let (mut depth, mut below) = (0, false);
    for c in line.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        below |= depth < 0;
    }
    (depth, below)
}

/// Removes the lines of a range, if the braces match.
fn try_without(
    lines: &mut Vec<String>,
    start: usize,
    end: usize,
    shows: &mut impl FnMut(&str) -> bool,
) -> bool {
    let mut open = 0;
    for line in &lines[start..end] {
        let (change, _) = brace_depth(line);
        open += change;
        if open < 0 {
            return false;
        }
    }
    let mut shorter = lines.clone();
    shorter.drain(start..end);
    if open != 0 || !shows(&joined(&shorter)) {
        return false;
    }
    *lines = shorter;
    true
}

/// Removes the block that begins at a line, or its first and last line only.
fn unwrap_block(
    lines: &mut Vec<String>,
    start: usize,
    shows: &mut impl FnMut(&str) -> bool,
) -> bool {
    if brace_depth(&lines[start]).0 != 1 {
        return false;
    }
    let mut open = 0;
    let end = (start..lines.len()).find(|at| {
        open += brace_depth(&lines[*at]).0;
        open == 0
    });
    let Some(end) = end else { return false };
    if try_without(lines, start, end + 1, shows) {
        return true;
    }
    let mut shorter = lines.clone();
    shorter.remove(end);
    shorter.remove(start);
    if !shows(&joined(&shorter)) {
        return false;
    }
    *lines = shorter;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::c_program;

    #[test]
    fn irrelevant_lines_are_removed() {
        let wanted = "0.9 * sqrt(";
        let shows = |text: &str| {
            let balanced = text
                .chars()
                .fold(0, |n, c| n + i32::from(c == '{') - i32::from(c == '}'));
            text.contains(wanted) && balanced == 0
        };
        let seed = (0..100).find(|s| shows(&c_program(*s, 14).source)).unwrap();
        let small = reduce_text(&c_program(seed, 14).source, shows);
        assert!(small.lines().count() <= 3, "{small}");
    }
}
