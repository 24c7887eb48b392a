//! Dynamic sections of programs and libraries, as `objdump` prints them: needed libraries, and the floor of glibc.
//!
//! The floor is the newest symbol version of glibc that a file references. The dynamic linker refuses the file below
//! the floor, whatever the machine of the build was.

use crate::process::{self, Failure, Outcome};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries of glibc and the unwinder: every system of a manylinux tag has them (PEP 600).
const EVERYWHERE: &[&str] = &[
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
];

/// A version of glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glibc {
    major: u32,
    minor: u32,
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Glibc {
    /// Returns the version that a symbol version such as `GLIBC_2.36` stands for; `None` for other names.
    ///
    /// # Errors
    /// Fails for a name of glibc without a known release: such a file has no floor that a tag could state.
    fn of(symbol_version: &str) -> Outcome<Option<Glibc>> {
        let Some(text) = symbol_version.strip_prefix("GLIBC_") else {
            return Ok(None);
        };
        // Relative relocations in packed form have no symbol.
        if text == "ABI_DT_RELR" {
            return Ok(Some(Glibc {
                major: 2,
                minor: 36,
            }));
        }
        let mut numbers = text.split('.').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Some(Glibc { major, minor })),
            _ => Err(Failure::new(format!(
                "{symbol_version} has no release of glibc"
            ))),
        }
    }
}

/// Needs of one file, or of several.
#[derive(Default, Debug)]
pub struct DynamicSection {
    /// Names of the needed libraries.
    pub needed: BTreeSet<String>,
    /// The floor; `None` if no symbol of glibc is referenced.
    pub floor: Option<Glibc>,
    /// Symbols with the version of the floor.
    pub newest: BTreeSet<String>,
}

impl DynamicSection {
    /// Reads the needs of several files together.
    ///
    /// # Errors
    /// Fails if `objdump` does, or if a file has no floor.
    pub fn of_all<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Outcome<DynamicSection> {
        let mut all = DynamicSection::default();
        for file in files {
            let text = process::capture(Command::new("objdump").args(["-p", "-T"]).arg(file))?;
            all.add(&text)
                .map_err(|why| Failure::new(format!("{}: {why}", file.display())))?;
        }
        Ok(all)
    }

    /// Adds the needs in the output of `objdump -p -T`.
    fn add(&mut self, text: &str) -> Outcome<()> {
        let lines = || text.lines().map(|line| line.split_whitespace().collect());
        for words in lines() {
            let words: Vec<&str> = words;
            match words[..] {
                ["NEEDED", library] => drop(self.needed.insert(library.into())),
                // A version reference: hash, flags, index, version. A weak reference has flags 0x02, and the dynamic
                // linker permits its absence. A weak symbol with a strong reference is no exception.
                [_, "0x00", _, version] => self.lift(version)?,
                _ => {}
            }
        }
        let floor = self.floor.map(|floor| format!("(GLIBC_{floor})"));
        for words in lines() {
            let words: Vec<&str> = words;
            // A symbol: address, flags, section, size, version, name.
            if let [.., "*UND*", _, version, symbol] = words[..]
                && floor.as_deref() == Some(version)
            {
                self.newest.insert(symbol.into());
            }
        }
        Ok(())
    }

    /// Lifts the floor to a symbol version.
    fn lift(&mut self, symbol_version: &str) -> Outcome<()> {
        let version = Glibc::of(symbol_version)?;
        if self.floor < version {
            self.floor = version;
            self.newest.clear();
        }
        Ok(())
    }

    /// Returns the needed libraries that are neither glibc's nor the unwinder.
    pub fn foreign(&self) -> Vec<&str> {
        let needed = self.needed.iter().map(String::as_str);
        needed.filter(|name| !EVERYWHERE.contains(name)).collect()
    }

    /// Returns the platform tag of a wheel with these needs: `manylinux` with the floor, or `linux` if a library
    /// must come from elsewhere.
    pub fn wheel_tag(&self) -> String {
        let machine = std::env::consts::ARCH;
        match self.floor {
            Some(Glibc { major, minor }) if self.foreign().is_empty() => {
                format!("manylinux_{major}_{minor}_{machine}")
            }
            _ => format!("linux_{machine}"),
        }
    }

    /// Describes the needs in one line.
    pub fn summary(&self) -> String {
        let needed: Vec<&str> = self.needed.iter().map(String::as_str).collect();
        let newest: Vec<&str> = self.newest.iter().map(String::as_str).take(4).collect();
        match self.floor {
            None => format!("needs {}", needed.join(", ")),
            Some(floor) => format!(
                "needs {}; glibc {floor} ({})",
                needed.join(", "),
                newest.join(", ")
            ),
        }
    }
}

/// Returns the programs and shared libraries below a folder, sorted.
///
/// # Errors
/// Fails if a file or a folder is not readable.
pub fn elf_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let cannot = |path: &Path, e| Failure::new(format!("cannot read {}: {e}", path.display()));
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| cannot(&folder, e))? {
            let path = entry.map_err(|e| cannot(&folder, e))?.path();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let mut head = Vec::new();
            let file = std::fs::File::open(&path).map_err(|e| cannot(&path, e))?;
            file.take(18)
                .read_to_end(&mut head)
                .map_err(|e| cannot(&path, e))?;
            // Executables and shared objects; relocatable files have no dynamic section.
            if head.starts_with(b"\x7fELF") && matches!(head.get(16), Some(2 | 3)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
Dynamic Section:
  NEEDED               libm.so.6
  NEEDED               libc.so.6
  RUNPATH              $ORIGIN

Version References:
  required from libc.so.6:
    0x09691a75 0x00 03 GLIBC_2.2.5
    0x069691b6 0x00 04 GLIBC_2.36
    0x069691b7 0x02 05 GLIBC_2.39

DYNAMIC SYMBOL TABLE:
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) free
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.36) arc4random
0000000000000000  w   DF *UND*  0000000000000000 (GLIBC_2.39) pidfd_spawnp
0000000000000000  w   D  *UND*  0000000000000000              __gmon_start__
0000000000001000 g    DF .text  0000000000000010 (GLIBC_2.40) own
";

    fn section(text: &str) -> DynamicSection {
        let mut section = DynamicSection::default();
        section.add(text).expect("readable");
        section
    }

    #[test]
    fn the_newest_strong_version_is_the_floor() {
        let section = section(TEXT);
        assert_eq!(section.floor.map(|f| f.to_string()), Some("2.36".into()));
        assert_eq!(section.newest, BTreeSet::from(["arc4random".to_owned()]));
        assert!(section.foreign().is_empty());
        assert!(section.wheel_tag().starts_with("manylinux_2_36_"));
    }

    #[test]
    fn versions_compare_as_numbers() {
        let section = section(&TEXT.replace("2.2.5", "2.4"));
        assert_eq!(section.floor.map(|f| f.to_string()), Some("2.36".into()));
    }

    #[test]
    fn packed_relocations_lift_the_floor() {
        let section = section(&TEXT.replace("GLIBC_2.36", "GLIBC_ABI_DT_RELR"));
        assert_eq!(section.floor.map(|f| f.to_string()), Some("2.36".into()));
    }

    #[test]
    fn a_library_of_elsewhere_takes_the_tag_away() {
        let section = section(&TEXT.replace("libm.so.6", "libLLVM.so.22.1"));
        assert_eq!(section.foreign(), ["libLLVM.so.22.1"]);
        assert!(section.wheel_tag().starts_with("linux_"));
    }

    #[test]
    fn a_private_symbol_has_no_floor() {
        let text = TEXT.replace("GLIBC_2.36", "GLIBC_PRIVATE");
        assert!(DynamicSection::default().add(&text).is_err());
    }

    #[test]
    fn a_program_of_this_build_is_read() {
        let own = std::env::current_exe().expect("a path");
        let section = DynamicSection::of_all([&own]).expect("readable");
        assert!(section.needed.contains("libc.so.6"), "{section:?}");
        assert!(section.floor.is_some() && !section.newest.is_empty());
    }
}
