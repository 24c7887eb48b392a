//! Data layout of the target: byte order, pointer sizes and alignments, parsed from LLVM's data-layout string.
//!
//! A unit holds a layout. `type_sizes.rs` computes sizes and offsets of the unit's types on the target.

/// The target's data layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// True if the target is little-endian.
    pub little_endian: bool,
    /// The size of a pointer of address space 0 in bytes.
    pub pointer_bytes: u64,
    /// Pointer sizes of other address spaces that differ from address space 0: (space, bytes).
    pub other_pointers: Vec<(u32, u64)>,
    /// ABI alignments of integers: (bits, bytes), ascending.
    pub(crate) int_align: Vec<(u32, u64)>,
    /// The ABI alignment of x87 floats in bytes.
    pub(crate) f80_align: u64,
    text: String,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::parse(
            "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
        )
    }
}

impl Layout {
    /// Parses LLVM's data-layout string. Components without sizes or alignments are ignored, but remain in
    /// [`Layout::text()`].
    pub fn parse(text: &str) -> Self {
        let mut layout = Layout {
            little_endian: true,
            pointer_bytes: 8,
            other_pointers: Vec::new(),
            int_align: vec![(1, 1), (8, 1), (16, 2), (32, 4), (64, 4)],
            f80_align: 16,
            text: text.to_string(),
        };
        for part in text.split('-') {
            layout.parse_component(part);
        }
        layout.int_align.sort_unstable();
        layout
    }

    fn parse_component(&mut self, part: &str) {
        let mut fields = part.split(':');
        let head = fields.next().unwrap_or_default();
        let numbers: Vec<u64> = fields.filter_map(|f| f.parse().ok()).collect();
        match (head, numbers.as_slice()) {
            ("e", _) => self.little_endian = true,
            ("E", _) => self.little_endian = false,
            ("p" | "p0", [bits, ..]) => self.pointer_bytes = bits / 8,
            ("f80", [abi, ..]) => self.f80_align = abi / 8,
            _ => {
                let rest = head.get(1..).and_then(|n| n.parse::<u32>().ok());
                match (head.as_bytes().first(), rest, numbers.as_slice()) {
                    (Some(b'p'), Some(space), [bits, ..]) => {
                        self.other_pointers.push((space, bits / 8));
                    }
                    (Some(b'i'), Some(bits), [abi, ..]) => {
                        self.int_align.retain(|(b, _)| *b != bits);
                        self.int_align.push((bits, abi / 8));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the original data-layout string.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the size of a pointer of address space `space`, in bytes.
    pub fn pointer_size_bytes(&self, space: u32) -> u64 {
        self.other_pointers
            .iter()
            .find(|(s, _)| *s == space)
            .map_or(self.pointer_bytes, |(_, bytes)| *bytes)
    }
}
