//! Element layout: the scalar fields of an array element. The bodies in `semantics/flang` copy an element
//! scalar by scalar, so that type analysis sees floats.

/// The type of a scalar; the number is that of `semantics/flang`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScalarType {
    I8,
    I16,
    I32,
    I64,
    Float,
    Double,
}

impl ScalarType {
    /// Returns LLVM's name of the type.
    fn name(self) -> &'static str {
        match self {
            ScalarType::I8 => "i8",
            ScalarType::I16 => "i16",
            ScalarType::I32 => "i32",
            ScalarType::I64 => "i64",
            ScalarType::Float => "float",
            ScalarType::Double => "double",
        }
    }
}

/// A run of consecutive scalars of one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScalarRun {
    /// The byte offset of the first scalar in an element.
    pub(super) at: u64,
    pub(super) ty: ScalarType,
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
            7 | 12 | 39 => (ScalarType::I8, 1, 1),
            8 | 13 => (ScalarType::I16, 2, 1),
            9 | 14 => (ScalarType::I32, 4, 1),
            10 | 15 => (ScalarType::I64, 8, 1),
            27 => (ScalarType::Float, 4, 1),
            28 => (ScalarType::Double, 8, 1),
            34 => (ScalarType::Float, 4, 2),
            35 => (ScalarType::Double, 8, 2),
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
                format!("{count}_{}", ty.name())
            }
            parts => {
                let part = |run: &ScalarRun| format!("_{}_{}_{}", run.at, run.count, run.ty.name());
                format!(
                    "{}{}",
                    self.size,
                    parts.iter().map(part).collect::<String>()
                )
            }
        }
    }

    /// Returns the offset of each scalar in bytes, and its type.
    pub(super) fn scalars(&self) -> Vec<(u64, ScalarType)> {
        let of_run = |run: &ScalarRun| {
            let (at, bytes, ty) = (run.at, run.bytes, run.ty);
            (0..run.count).map(move |index| (at + index * bytes, ty))
        };
        self.parts.iter().flat_map(of_run).collect()
    }
}
