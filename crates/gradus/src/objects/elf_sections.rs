//! Appends sections to relocatable ELF objects (64 bits, little endian), without a run of `objcopy`.
//!
//! The file keeps all bytes but two fields of the header and the entry of the section names; new contents, names and
//! the section table follow at the end.

/// Flag of sections that a linker leaves out.
const SHF_EXCLUDE: u64 = 0x8000_0000;
const SHT_PROGBITS: u32 = 1;
const ET_REL: u16 = 1;
/// Size of the file's header, and of an entry of the section table.
const HEADER_BYTES: usize = 64;
/// Offsets of fields in the file's header.
const TYPE: usize = 0x10;
const TABLE: usize = 0x28;
const ENTRY_BYTES: usize = 0x3a;
const COUNT: usize = 0x3c;
const NAMES: usize = 0x3e;
/// Offsets of fields in a section's entry.
const SECTION_OFFSET: usize = 0x18;
const SECTION_SIZE: usize = 0x20;

/// Returns the object with a section that linkers leave out; `None` for other files than such objects.
pub(crate) fn with_excluded_section(object: &[u8], name: &str, contents: &[u8]) -> Option<Vec<u8>> {
    let is_elf64 = object.starts_with(b"\x7fELF\x02\x01");
    if !is_elf64
        || u16_at(object, TYPE)? != ET_REL
        || usize::from(u16_at(object, ENTRY_BYTES)?) != HEADER_BYTES
    {
        return None;
    }
    let table = usize::try_from(u64_at(object, TABLE)?).ok()?;
    let count = u16_at(object, COUNT)?;
    let names = u16_at(object, NAMES)?;
    // Zero stands for a count that does not fit, kept elsewhere.
    let count_after = count
        .checked_add(1)
        .filter(|after| count > 0 && *after < 0xff00)?;
    let mut entries = object
        .get(table..table + usize::from(count) * HEADER_BYTES)?
        .to_vec();
    let of_names = usize::from(names) * HEADER_BYTES;
    let start = usize::try_from(u64_at(&entries, of_names + SECTION_OFFSET)?).ok()?;
    let size = usize::try_from(u64_at(&entries, of_names + SECTION_SIZE)?).ok()?;
    let mut texts = object.get(start..start + size)?.to_vec();

    let mut file = object.to_vec();
    let mut entry = [0; HEADER_BYTES];
    entry[..4].copy_from_slice(&u32::try_from(texts.len()).ok()?.to_le_bytes());
    entry[4..8].copy_from_slice(&SHT_PROGBITS.to_le_bytes());
    entry[8..16].copy_from_slice(&SHF_EXCLUDE.to_le_bytes());
    set_u64(&mut entry, SECTION_OFFSET, file.len());
    set_u64(&mut entry, SECTION_SIZE, contents.len());
    // The alignment.
    set_u64(&mut entry, 0x30, 1);
    file.extend(contents);
    texts.extend(name.as_bytes());
    texts.push(0);
    set_u64(&mut entries, of_names + SECTION_OFFSET, file.len());
    set_u64(&mut entries, of_names + SECTION_SIZE, texts.len());
    file.extend(texts);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len();
    file.extend(entries);
    file.extend(entry);
    set_u64(&mut file, TABLE, table);
    file[COUNT..COUNT + 2].copy_from_slice(&count_after.to_le_bytes());
    Some(file)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes(field.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

fn set_u64(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 8].copy_from_slice(&(value as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection, SectionFlags};

    #[test]
    fn a_section_is_added_and_the_others_stay() {
        let object = crate::runtime_library::OBJECT;
        let made = with_excluded_section(object, ".of.gradus", b"contents").expect("an object");
        let before = object::File::parse(object).expect("parsed");
        let after = object::File::parse(&*made).expect("parsed");
        let added = after.section_by_name(".of.gradus").expect("added");
        assert_eq!(added.data().expect("read"), b"contents");
        let SectionFlags::Elf { sh_flags } = added.flags() else {
            panic!("an ELF section");
        };
        assert_eq!(sh_flags, SHF_EXCLUDE);
        assert_eq!(after.sections().count(), before.sections().count() + 1);
        for (old, new) in before.sections().zip(after.sections()) {
            assert_eq!(old.name().expect("a name"), new.name().expect("a name"));
            if old.name() != Ok(".shstrtab") && old.name() != Ok(".strtab") {
                assert_eq!(old.data().expect("read"), new.data().expect("read"));
            }
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        for bytes in [&b""[..], b"\x7fELF\x02\x01", b"BC\xc0\xde", &[0; 100]] {
            assert!(with_excluded_section(bytes, "a", b"").is_none());
        }
    }
}
