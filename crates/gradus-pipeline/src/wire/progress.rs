//! Progress of a run: the phase, and the function in work. The compiling process writes each step as a line to standard
//! error; the parent takes these lines out of the process's messages.

/// A step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The phase, such as the name of a pass.
    pub phase: String,
    /// The file or function in work; empty if the phase concerns the whole program.
    pub subject: String,
    /// The number of the subject, from 1.
    pub number: usize,
    /// The number of subjects known so far; 0 without a list.
    pub total: usize,
}

/// The start of a line with a step. Compilers and the C library write no control characters.
const MARK: &str = "\u{1e}gradus-progress\t";

impl Progress {
    /// Returns the step as a line for [`Progress::parse`].
    pub fn line(&self) -> String {
        let plain = |text: &str| text.replace(char::is_control, " ");
        let (phase, subject) = (plain(&self.phase), plain(&self.subject));
        format!(
            "{MARK}{phase}\t{subject}\t{}\t{}\n",
            self.number, self.total
        )
    }

    /// Parses a line without its end; `None` for other lines.
    pub fn parse(line: &str) -> Option<Progress> {
        let mut parts = line.strip_prefix(MARK)?.split('\t');
        let mut text = || parts.next().map(String::from);
        let (phase, subject) = (text()?, text()?);
        let (number, total) = (text()?.parse().ok()?, text()?.parse().ok()?);
        Some(Progress {
            phase,
            subject,
            number,
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn lines_come_back() {
        let step = Progress {
            phase: "differentiate".into(),
            subject: "a::f(double)".into(),
            number: 2,
            total: 5,
        };
        let line = step.line();
        assert_eq!(Progress::parse(line.trim_end()), Some(step));
        assert_eq!(Progress::parse("warning: differentiate"), None);
    }
}
