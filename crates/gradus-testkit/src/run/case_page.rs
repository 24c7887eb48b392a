//! Parses and writes case pages.
//!
//! A page is a title, a `run:` line, and sections. The text before `## out` is the author's and is
//! preserved verbatim; `## out` and `## values` are written by the runner.

/// A pass of a page's `run:` line, with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The pass.
    pub name: String,
    /// The options.
    pub words: Vec<String>,
}

/// A case page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The subject of the page, in a line.
    pub title: String,
    /// The passes in order.
    pub steps: Vec<Step>,
    /// The tolerance of floating-point results, relative to their size; 0 requires equality.
    pub tolerance: f64,
    /// True if the program after the passes is shown (`out: no` omits it, for long programs whose behaviour
    /// is the point).
    pub shows_output: bool,
    /// The text of the program.
    pub input: String,
    /// The calls to check, one per line.
    pub calls: Vec<String>,
    /// The program after the passes.
    pub output: String,
    /// The results of the calls.
    pub values: String,
    /// The author's part.
    head: String,
}

impl Page {
    /// Parses a page.
    ///
    /// # Errors
    /// A sentence with the missing part.
    pub fn parse(text: &str) -> Result<Page, String> {
        let mut page = Page {
            title: String::new(),
            steps: Vec::new(),
            tolerance: 0.0,
            shows_output: true,
            input: String::new(),
            calls: Vec::new(),
            output: String::new(),
            values: String::new(),
            head: String::new(),
        };
        let generated = ["\n## out", "\n## values"];
        let end = generated
            .iter()
            .filter_map(|section| text.find(section))
            .min();
        let end = end.map_or(text.len(), |at| at + 1);
        page.head = text[..end].trim_end().to_string();
        let mut sections = text.split("\n## ");
        page.header(sections.next().unwrap_or_default())?;
        for section in sections {
            let (name, content) = section.split_once('\n').unwrap_or((section, ""));
            let content = unfenced(content);
            match name.split_whitespace().next() {
                Some("in") => page.input = content,
                Some("check") => {
                    let lines = content
                        .lines()
                        .map(str::trim)
                        .filter(|line| !line.is_empty());
                    page.calls = lines.map(str::to_string).collect();
                }
                Some("out") => page.output = content,
                Some("values") => page.values = content,
                _ => return Err(format!("unknown section `{name}`")),
            }
        }
        match page.input.is_empty() {
            true => Err("the page has no section `## in`".into()),
            false => Ok(page),
        }
    }

    fn header(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("# ") {
                self.title = title.trim().to_string();
            } else if let Some(steps) = line.strip_prefix("run:") {
                self.steps = steps.split(',').filter_map(step).collect();
            } else if let Some(word) = line.strip_prefix("out:") {
                self.shows_output = word.trim() != "no";
            } else if let Some(number) = line.strip_prefix("tolerance:") {
                let number = number.trim();
                self.tolerance = number
                    .parse()
                    .map_err(|_| format!("`{number}` is not a tolerance"))?;
            }
        }
        match self.title.is_empty() {
            true => Err("the page has no title `# …`".into()),
            false => Ok(()),
        }
    }

    /// Returns the page's text with new output and values.
    pub fn with_results(&self, output: &str, values: &str) -> String {
        let mut text = format!("{}\n", self.head);
        if self.shows_output {
            text.push_str(&format!("\n## out\n```\n{}\n```\n", output.trim_end()));
        }
        if !values.is_empty() {
            text.push_str(&format!("\n## values\n```\n{}\n```\n", values.trim_end()));
        }
        text
    }
}

/// Parses a pass and its options; `None` for an empty entry between commas.
fn step(text: &str) -> Option<Step> {
    let mut words = text.split_whitespace().map(str::to_string);
    Some(Step {
        name: words.next()?,
        words: words.collect(),
    })
}

/// Returns the content of a fenced block, or everything without a fence.
fn unfenced(content: &str) -> String {
    let Some((_, rest)) = content.split_once("```") else {
        return content.trim_end().to_string();
    };
    let (_, inside) = rest.split_once('\n').unwrap_or((rest, ""));
    let inside = inside.split("\n```").next().unwrap_or_default();
    inside.trim_end_matches("```").trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A title\nrun: fold, ad --mode=reverse -f f\ntolerance: 1e-9\n\nWords.\n\n\
        ## in\nfunc @f() {\n  return\n}\n\n## check\n@f()\n";

    #[test]
    fn a_page_is_read() {
        let page = Page::parse(TEXT).unwrap();
        assert_eq!(page.title, "A title");
        assert_eq!(page.steps[0].name, "fold");
        assert_eq!(page.steps[1].words, ["--mode=reverse", "-f", "f"]);
        assert_eq!(page.tolerance, 1e-9);
        assert_eq!(page.input, "func @f() {\n  return\n}");
        assert_eq!(page.calls, ["@f()"]);
        assert_eq!(page.output, "");
    }

    #[test]
    fn page_round_trip_keeps_author_part() {
        let page = Page::parse(TEXT).unwrap();
        let text = page.with_results("func @f() {}\n", "value 3");
        assert!(text.starts_with(TEXT.trim_end()));
        let again = Page::parse(&text).unwrap();
        assert_eq!(
            (again.output.as_str(), again.values.as_str()),
            ("func @f() {}", "value 3")
        );
        assert_eq!(again.with_results("func @f() {}\n", "value 3"), text);
        let fenced = TEXT.replace(
            "func @f() {\n  return\n}",
            "```gir\nfunc @f() {\n  return\n}\n```",
        );
        assert_eq!(Page::parse(&fenced).unwrap().input, page.input);
    }

    #[test]
    fn broken_pages_are_reported() {
        assert!(Page::parse("run: fold\n## in\nx").is_err());
        assert!(Page::parse("# T\nrun: fold\n").is_err());
        assert!(Page::parse("# T\n## in\nx\n## what\ny").is_err());
    }
}
