//! Text from programs in a page: names of files and functions may hold any character.

/// Returns text for an element's content or a quoted attribute. Control characters are replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\t' | '\n' => html.push(c),
            c if c.is_control() || is_direction_mark(c) => html.push('\u{fffd}'),
            c => html.push(c),
        }
    }
    html
}

/// Returns true for characters that change the direction of the text after them: source text in a page must read as
/// the compiler reads it.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns JSON text for a script element: no end tag and no comment can occur.
pub(super) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Returns a text with the parts between backquotes as code.
pub(super) fn with_code(text: &str) -> String {
    let parts = escaped(text);
    let mut html = String::new();
    let mut parts = parts.split('`').peekable();
    let mut is_code = false;
    while let Some(part) = parts.next() {
        // A last backquote without a partner stays.
        match (is_code, parts.peek().is_some()) {
            (false, _) => html += part,
            (true, true) => html += &format!("<code>{part}</code>"),
            (true, false) => html += &format!("`{part}"),
        }
        is_code = !is_code;
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_elements() {
        let name = "a'\"<script>alert(1)</script>\u{1b}&\u{202e}";
        let text = escaped(name);
        assert!(
            !text.contains(['<', '"', '\'', '\u{1b}', '\u{202e}']),
            "{text}"
        );
        assert!(text.contains("&lt;script&gt;"));
        assert!(!in_script(name).contains('<'));
    }

    #[test]
    fn backquotes_mark_code() {
        assert_eq!(
            with_code("add `restrict` here"),
            "add <code>restrict</code> here"
        );
        assert_eq!(with_code("a ` b"), "a ` b");
        assert_eq!(with_code("`<a>`"), "<code>&lt;a&gt;</code>");
    }
}
