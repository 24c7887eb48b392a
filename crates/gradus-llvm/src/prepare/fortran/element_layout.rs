//! Element layout: the scalar fields of an array element, and code that copies an element field by field,
//! so that type analysis sees floats.

/// A run of consecutive scalars of one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScalarRun {
    /// The byte offset of the first scalar in an element.
    pub(super) at: u64,
    /// LLVM's name of the type.
    pub(super) ty: &'static str,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// The layout of an array element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Element {
    size: u64,
    parts: Vec<ScalarRun>,
}

impl Element {
    /// Returns the layout for the type code in a descriptor (`CFI_type_…`): integers, logicals (copied as
    /// integers of equal size), reals and complex numbers.
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
        let part = ScalarRun {
            at: 0,
            ty,
            bytes,
            count,
        };
        Some(Element::record(bytes * count, vec![part]))
    }

    /// Returns the layout of a variable of a derived type.
    pub(super) fn record(size: u64, parts: Vec<ScalarRun>) -> Element {
        Element { size, parts }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn parts(&self) -> &[ScalarRun] {
        &self.parts
    }

    /// Returns the part of a function name that identifies the layout.
    pub(super) fn name(&self) -> String {
        match self.parts.as_slice() {
            [
                ScalarRun {
                    at: 0,
                    ty,
                    bytes,
                    count,
                },
            ] if bytes * count == self.size => {
                format!("{count}_{ty}")
            }
            parts => {
                let part =
                    |ScalarRun { at, ty, count, .. }: &ScalarRun| format!("_{at}_{count}_{ty}");
                format!(
                    "{}{}",
                    self.size,
                    parts.iter().map(part).collect::<String>()
                )
            }
        }
    }

    /// Text that copies an element.
    pub(super) fn text(&self, to: &str, from: &str) -> String {
        let mut lines = String::new();
        for ScalarRun {
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
