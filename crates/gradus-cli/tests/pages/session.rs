//! Sessions of pages: blocks of a page are files, commands and the commands' output, in a folder of their own.
//!
//! | opening of a block | meaning |
//! |---|---|
//! | ```` ```c energy.c ```` | a file, written into the folder |
//! | ```` ```sh ```` | commands, one per line; all succeed |
//! | ```` ```sh refused ```` | commands; the last ends with status 1 |
//! | ```` ```text output ```` | output of the commands above: consecutive lines; `…` stands for other lines, or for the rest of a line |
//! | ```` ```python ```` | run by the tests of the Python package, with its output |
//! | ```` ```text ```` | not run |

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A block of a page: the text after the opening, and the content.
pub type Block<'a> = (&'a str, String);

/// Line of an output block that stands for any number of lines; at the end of a line, for the rest of the line.
const OMISSION: &str = "…";

/// Returns the blocks of a part of a page.
pub fn blocks(part: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut open = false;
    for line in part.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(info), false) => {
                found.push((info.trim(), String::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                if let Some((_, text)) = found.last_mut() {
                    *text += line;
                    text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    found
}

/// Meaning of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// File of this name.
    File(&'a str),
    /// Commands.
    Commands,
    /// Commands of which the last is refused.
    Refused,
    /// Output of the commands above.
    Output,
    /// Python code.
    Python,
    /// Text that is not run.
    Text,
    /// Code without a file name, in this language.
    Unnamed(&'a str),
}

/// Returns the meaning of a block by the text after the opening.
pub fn kind(info: &str) -> Kind<'_> {
    match info.split_once(' ') {
        Some(("sh", "refused")) => Kind::Refused,
        Some(("text", "output")) => Kind::Output,
        Some((_, name)) => Kind::File(name),
        None => match info {
            "sh" => Kind::Commands,
            "python" => Kind::Python,
            "text" => Kind::Text,
            language => Kind::Unnamed(language),
        },
    }
}

/// Folder of a page, with the current folder of the shell.
pub struct Session {
    folder: PathBuf,
}

impl Session {
    /// Returns a session in an empty folder `at`. The names in `programs` are links to the command `gradus`.
    pub fn new(at: PathBuf, gradus: &Path, programs: &[&str]) -> Session {
        let _ = std::fs::remove_dir_all(&at);
        for inner in ["bin", "work", "tmp"] {
            std::fs::create_dir_all(at.join(inner)).expect("a folder");
        }
        let session = Session { folder: at };
        for name in programs {
            session.link(gradus, name);
        }
        if let Some(clang) = std::env::var_os("GRADUS_CLANG") {
            session.link(Path::new(&clang), "clang-22");
        }
        // Packages that a page makes belong to no workspace of the clone.
        std::fs::write(session.folder.join("Cargo.toml"), "[workspace]\n").expect("written");
        session
    }

    fn link(&self, to: &Path, name: &str) {
        let at = self.folder.join("bin").join(name);
        std::os::unix::fs::symlink(to, at).expect("a link");
    }

    /// Returns the folder for an installation of the page.
    pub fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    /// Writes a file of a page.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.folder.join("work").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// Runs a line in the folder where the line before has ended.
    pub fn command(&self, line: &str) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let current = self.folder.join("current");
        let start = std::fs::read_to_string(&current).unwrap_or_default();
        let start = match start.trim_end() {
            "" => self.folder.join("work"),
            left => PathBuf::from(left),
        };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap 'pwd > \"$CURRENT\"' EXIT\n{line}")]);
        let links = self.folder.join("bin");
        let installed = self.prefix().join("bin");
        command
            .env(
                "PATH",
                format!("{}:{}:{path}", installed.display(), links.display()),
            )
            .env("PREFIX", self.prefix())
            .env("CURRENT", &current)
            .env("TMPDIR", self.folder.join("tmp"))
            .env("CARGO_NET_OFFLINE", "true")
            .env(
                "CARGO_TARGET_DIR",
                self.folder.with_file_name("cargo gradus target"),
            )
            .current_dir(start);
        for name in ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTDOC", "CARGO"] {
            command.env_remove(name);
        }
        // The width of help is that of no terminal.
        command.env_remove("COLUMNS").stdin(Stdio::null());
        command.output().expect("a shell runs")
    }

    /// Writes the files and runs the commands of some blocks. Returns the output of each command.
    pub fn run(&self, blocks: &[Block<'_>]) -> Vec<(String, Output)> {
        let mut outputs = Vec::new();
        for (info, text) in blocks {
            match kind(info) {
                Kind::File(name) => self.write(name, text),
                Kind::Commands => {
                    outputs.extend(
                        text.lines()
                            .map(|line| (line.to_owned(), self.command(line))),
                    );
                }
                _ => {}
            }
        }
        outputs
    }

    /// Follows a page: commands end as the page says, and print the output that the page shows. Returns the number
    /// of commands.
    ///
    /// # Errors
    /// Names the command or the lines that differ.
    pub fn follow(&self, blocks: &[Block<'_>]) -> Result<usize, String> {
        let (mut count, mut said) = (0, None);
        for (info, text) in blocks {
            let kind = kind(info);
            match kind {
                Kind::File(name) => self.write(name, text),
                Kind::Commands | Kind::Refused => {
                    let mut printed = String::new();
                    let lines: Vec<&str> = text.lines().collect();
                    for (i, line) in lines.iter().enumerate() {
                        let output = self.command(line);
                        let refused = kind == Kind::Refused && i + 1 == lines.len();
                        if output.status.code() != Some(i32::from(refused)) {
                            return Err(command_with_outcome(line, &output));
                        }
                        printed += &String::from_utf8_lossy(&output.stdout);
                        printed += &String::from_utf8_lossy(&output.stderr);
                    }
                    count += lines.len();
                    said = Some(printed);
                }
                Kind::Output => {
                    if let Some(printed) = said.as_ref().filter(|p| !shows(p, text)) {
                        return Err(format!(
                            "the page shows\n{text}\nand the commands print\n{printed}"
                        ));
                    }
                }
                // The output after a block is that of the Python code.
                Kind::Python => said = None,
                Kind::Text => {}
                Kind::Unnamed(language) => {
                    return Err(format!(
                        "a block in `{language}` has no file name; mark text that is not run"
                    ));
                }
            }
        }
        Ok(count)
    }
}

/// Returns true if a text has the lines of an output block in order.
pub fn shows(said: &str, block: &str) -> bool {
    let said: Vec<&str> = said.lines().map(str::trim_end).collect();
    let block: Vec<&str> = block.lines().map(str::trim_end).collect();
    let equal = |said: &str, shown: &str| match shown.strip_suffix(OMISSION) {
        Some(start) => said.starts_with(start),
        None => said == shown,
    };
    let mut from = 0;
    block.split(|line| *line == OMISSION).all(|part| {
        let is_at = |at: &usize| {
            let there = said.get(*at..at + part.len()).unwrap_or_default();
            there.len() == part.len()
                && there
                    .iter()
                    .zip(part)
                    .all(|(said, shown)| equal(said, shown))
        };
        let found = (from..=said.len()).find(is_at);
        from = found.map_or(from, |at| at + part.len());
        found.is_some()
    })
}

/// Formats a command with its outcome.
pub fn command_with_outcome(line: &str, output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    format!("`{line}`: {}\n{printed}{said}", output.status)
}
