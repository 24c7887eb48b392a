//! Launch syntax with spaces inside the brackets, `k << < g, b >> > (x)`: nvcc accepts it, clang does not.

/// Closes every `<< <` and `>> >` of a launch; `None` without any. The length of lines, strings and
/// comments stay unchanged.
pub(super) fn close_brackets(text: &str) -> Option<String> {
    let places = split_bracket_ranges(text);
    if places.is_empty() {
        return None;
    }
    let mut bytes = text.as_bytes().to_vec();
    for (start, end, sign) in places {
        bytes[start..end].fill(b' ');
        bytes[start..start + 3].fill(sign);
    }
    String::from_utf8(bytes).ok()
}

/// Returns the positions of three brackets separated by blanks, with the bracket. Three equal brackets with
/// blanks mean a launch: `a << < b` is not an expression, and `> > >` that closes templates is
/// distinguished by the opening brackets.
fn split_bracket_ranges(text: &str) -> Vec<(usize, usize, u8)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut launch = false;
    while at < bytes.len() {
        let skipped = skip_literal_or_comment(bytes, at);
        if skipped > at {
            at = skipped;
            continue;
        }
        let sign = bytes[at];
        let wanted = if launch { b'>' } else { b'<' };
        match bracket_triple_end(bytes, at).filter(|_| sign == wanted) {
            Some(end) => {
                if end - at > 3 {
                    found.push((at, end, sign));
                }
                launch = !launch;
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// Returns the end of three equal brackets separated by blanks.
fn bracket_triple_end(bytes: &[u8], start: usize) -> Option<usize> {
    let sign = bytes[start];
    if sign != b'<' && sign != b'>' {
        return None;
    }
    let mut at = start;
    for _ in 0..3 {
        while bytes.get(at) == Some(&b' ') {
            at += 1;
        }
        if bytes.get(at) != Some(&sign) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

/// Returns the end of a string, character or comment that begins at `at`; `at` otherwise.
fn skip_literal_or_comment(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let end = |from: usize, close: &[u8]| {
        let found = rest[from..].windows(close.len()).position(|w| w == close);
        found.map_or(bytes.len(), |n| at + from + n + close.len())
    };
    match rest {
        [b'/', b'/', ..] => end(2, b"\n") - usize::from(rest.contains(&b'\n')),
        [b'/', b'*', ..] => end(2, b"*/"),
        [quote @ (b'"' | b'\''), ..] => {
            // Digits may have a separator between them.
            if *quote == b'\'' && at > 0 && bytes[at - 1].is_ascii_digit() {
                return at;
            }
            let mut next = 1;
            while next < rest.len() && rest[next] != *quote && rest[next] != b'\n' {
                next += 1 + usize::from(rest[next] == b'\\');
            }
            at + (next + 1).min(rest.len())
        }
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::close_brackets;

    #[test]
    fn only_launches_with_blanks_change() {
        let same = [
            "k<<<g, b>>>(x);",
            "a << b; vector<vector<int> > v; c >> d;",
            "s = \"<< <\"; // >> >",
        ];
        for text in same {
            assert_eq!(close_brackets(text), None, "{text}");
        }
        let text = "k << < g, f<a<int> >(1) >> > (x); y = 1 << 2;";
        let read = "k <<<  g, f<a<int> >(1) >>>  (x); y = 1 << 2;";
        assert_eq!(close_brackets(text).as_deref(), Some(read));
    }
}
