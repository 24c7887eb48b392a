//! Archives of objects, as written by `ar` with a symbol table.

use crate::files;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use std::path::Path;

/// Returns the members of an archive, or the files named by a thin archive; empty if `path` is not an
/// archive.
pub(crate) fn members(path: &Path) -> Vec<Vec<u8>> {
    let bytes = files::read(path).unwrap_or_default();
    let Ok(archive) = ArchiveFile::parse(&*bytes) else {
        return Vec::new();
    };
    let members = archive.members().filter_map(Result::ok);
    let content = members.filter_map(|member| match member.is_thin() {
        true => {
            let name = String::from_utf8_lossy(member.name()).into_owned();
            files::read(&path.with_file_name(name)).ok()
        }
        false => member.data(&*bytes).ok().map(<[u8]>::to_vec),
    });
    content.collect()
}

/// The magic number of archives.
const MAGIC: &[u8] = b"!<arch>\n";
/// The length of a member's header in bytes.
const HEADER: usize = 60;

/// Creates an archive of members, given by name and content.
pub(crate) fn create(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut names = Vec::new();
    let mut headers = Vec::new();
    for (name, content) in members {
        let short = format!("{name}/");
        let named = match short.len() <= 16 {
            true => short,
            false => {
                let at = names.len();
                names.extend_from_slice(format!("{name}/\n").as_bytes());
                format!("/{at}")
            }
        };
        headers.push(header(&named, content.len()));
    }
    let symbols: Vec<Vec<Vec<u8>>> = members
        .iter()
        .map(|(_, bytes)| defined_symbols(bytes))
        .collect();
    let table_len = symbols
        .iter()
        .flatten()
        .map(|name| 4 + name.len() + 1)
        .sum::<usize>()
        + 4;
    let mut start = MAGIC.len() + HEADER + even(table_len);
    if !names.is_empty() {
        start += HEADER + even(names.len());
    }
    let mut table = number(symbols.iter().flatten().count());
    for ((_, content), defined) in members.iter().zip(&symbols) {
        defined.iter().for_each(|_| table.extend(number(start)));
        start += HEADER + even(content.len());
    }
    for name in symbols.iter().flatten() {
        table.extend_from_slice(name);
        table.push(0);
    }
    let mut archive = MAGIC.to_vec();
    add(&mut archive, &header("/", table.len()), &table);
    if !names.is_empty() {
        add(&mut archive, &header("//", names.len()), &names);
    }
    for ((_, content), header) in members.iter().zip(&headers) {
        add(&mut archive, header, content);
    }
    archive
}

fn add(archive: &mut Vec<u8>, header: &str, content: &[u8]) {
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(content);
    archive.extend((content.len() % 2 == 1).then_some(b'\n'));
}

/// Formats a member's header: name, time, owner, group, mode and length, in fixed columns.
fn header(name: &str, len: usize) -> String {
    format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{len:<10}`\n", 0, 0, 0, 644)
}

/// Returns the global symbols defined by an object.
pub(crate) fn defined_symbols(bytes: &[u8]) -> Vec<Vec<u8>> {
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    let offered = file
        .symbols()
        .filter(|s| s.is_global() && !s.is_undefined());
    let names = offered.filter_map(|symbol| symbol.name_bytes().ok());
    names.map(<[u8]>::to_vec).collect()
}

fn number(value: usize) -> Vec<u8> {
    u32::try_from(value)
        .unwrap_or(u32::MAX)
        .to_be_bytes()
        .to_vec()
}

fn even(len: usize) -> usize {
    len + len % 2
}

#[cfg(test)]
mod tests {
    use super::create;
    use object::read::archive::ArchiveFile;

    #[test]
    fn members_come_out_again() {
        let members = [
            ("a.o".to_string(), vec![1, 2, 3]),
            ("with_a_long_name_in_it.o".to_string(), vec![4]),
            ("b.o".to_string(), Vec::new()),
        ];
        let bytes = create(&members);
        let archive = ArchiveFile::parse(&*bytes).expect("an archive");
        let read = archive.members().map(|member| {
            let member = member.expect("a member");
            let name = String::from_utf8_lossy(member.name()).into_owned();
            (name, member.data(&*bytes).expect("its content").to_vec())
        });
        assert_eq!(read.collect::<Vec<_>>(), members);
    }
}
