//! What an element of an array consists of, and how it is copied: part by part, each by its own type, so that
//! derivatives know what is a number.

/// Side by side, so many of a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    /// How far in an element the first lies.
    pub(super) at: u64,
    /// LLVM's name of the type.
    pub(super) ty: &'static str,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// What an element of an array consists of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Element {
    size: u64,
    parts: Vec<Part>,
}

impl Element {
    /// By the code in a descriptor (`CFI_type_…`): integers and logicals, which count as the least integers of so
    /// many bits, reals and complex numbers.
    pub(super) fn of(code: u64) -> Option<Element> {
        let (ty, bytes, count) = match code {
            7 | 12 | 39 => ("i8", 1, 1),
            8 | 13 => ("i16", 2, 1),
            9 | 14 => ("i32", 4, 1),
            10 | 15 => ("i64", 8, 1),
            27 => ("float", 4, 1),
            28 => ("double", 8, 1),
            34 => ("float", 4, 2),
            35 => ("double", 8, 2),
            _ => return None,
        };
        let part = Part {
            at: 0,
            ty,
            bytes,
            count,
        };
        Some(Element::record(bytes * count, vec![part]))
    }

    /// A variable of a derived type.
    pub(super) fn record(size: u64, parts: Vec<Part>) -> Element {
        Element { size, parts }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What functions that differ by it have in their names.
    pub(super) fn name(&self) -> String {
        match self.parts.as_slice() {
            [
                Part {
                    at: 0,
                    ty,
                    bytes,
                    count,
                },
            ] if bytes * count == self.size => {
                format!("{count}_{ty}")
            }
            parts => {
                let part = |Part { at, ty, count, .. }: &Part| format!("_{at}_{count}_{ty}");
                format!(
                    "{}{}",
                    self.size,
                    parts.iter().map(part).collect::<String>()
                )
            }
        }
    }

    /// Copies an element.
    pub(super) fn text(&self, to: &str, from: &str) -> String {
        let mut lines = String::new();
        for Part {
            at,
            ty,
            bytes,
            count,
        } in &self.parts
        {
            for at in (0..*count).map(|index| at + index * bytes) {
                lines += &format!(
                    "  %get.{at} = getelementptr i8, ptr {from}, i64 {at}
  %value.{at} = load {ty}, ptr %get.{at}
  %put.{at} = getelementptr i8, ptr {to}, i64 {at}
  store {ty} %value.{at}, ptr %put.{at}
"
                );
            }
        }
        lines
    }
}
