//! Structures of memory programs: members, offsets, types and TBAA tags.
//!
//! Every member is a multiple of eight bytes long, so that offsets are sums of sizes.

use crate::generate::Random;
use std::fmt::Write;

/// The memory to which a pointer member leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointee {
    /// The start of a structure with this number.
    Object(usize),
    /// A pointer to such a structure.
    Cell(usize),
    /// At least two floats.
    Numbers,
    /// A function of the program's callback type.
    Code,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Number,
    /// 0 or 1.
    Index,
    /// Two integers of 32 bits, 0 or 1.
    Pair,
    Pointer(Pointee),
    /// A pointer that may be null.
    Link(usize),
    /// An integer that holds the address of a structure.
    Word(usize),
    /// A tag and a cell. The cell holds the address of a structure if the tag is 1, a float otherwise.
    Union(usize),
    /// An array of pointers to structures.
    Row(usize, u64),
    Nested(usize),
    /// An array of structures.
    Nests(usize, u64),
    Numbers(u64),
}

/// A structure.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub fields: Vec<Field>,
    /// Offset of each member in bytes, and the size of the structure.
    pub offsets: Vec<u64>,
}

impl Shape {
    pub fn size(&self) -> u64 {
        self.offsets[self.fields.len()]
    }
}

/// Returns the structures of a program. A nested structure has a lower number.
pub(super) fn shapes(random: &mut Random) -> Vec<Shape> {
    let count = 2 + random.below(2) as usize;
    let mut found: Vec<Shape> = Vec::new();
    for own in 0..count {
        let members = 2 + random.below(4);
        let mut fields: Vec<Field> = (0..members).map(|_| field(random, own, count)).collect();
        if !fields
            .iter()
            .any(|f| matches!(f, Field::Pointer(Pointee::Object(_))))
        {
            let target = random.below(count as u32) as usize;
            let at = random.below(fields.len() as u32 + 1) as usize;
            fields.insert(at, Field::Pointer(Pointee::Object(target)));
        }
        let mut offsets = vec![0];
        for field in &fields {
            let last = offsets[offsets.len() - 1];
            offsets.push(last + size(*field, &found));
        }
        found.push(Shape { fields, offsets });
    }
    found
}

fn field(random: &mut Random, own: usize, count: usize) -> Field {
    let any = random.below(count as u32) as usize;
    let lower = random.below(own.max(1) as u32) as usize;
    match random.below(22) {
        0 => Field::Number,
        1 | 2 => Field::Index,
        3 => Field::Pair,
        4..=8 => Field::Pointer(Pointee::Object(any)),
        9 => Field::Pointer(Pointee::Cell(any)),
        10 => Field::Pointer(Pointee::Numbers),
        11 => Field::Pointer(Pointee::Code),
        12 => Field::Link(any),
        13 => Field::Word(any),
        14 => Field::Union(any),
        15 | 16 => Field::Row(any, 2 + 2 * u64::from(random.below(2))),
        17 | 18 if own > 0 => Field::Nested(lower),
        19 | 20 if own > 0 => Field::Nests(lower, 2),
        21 => Field::Numbers(2),
        _ => Field::Link(own),
    }
}

/// Returns the size of a member in bytes.
pub(super) fn size(field: Field, shapes: &[Shape]) -> u64 {
    match field {
        Field::Number
        | Field::Index
        | Field::Pair
        | Field::Pointer(_)
        | Field::Link(_)
        | Field::Word(_) => 8,
        Field::Union(_) => 16,
        Field::Row(_, count) | Field::Numbers(count) => 8 * count,
        Field::Nested(shape) => shapes[shape].size(),
        Field::Nests(shape, count) => count * shapes[shape].size(),
    }
}

/// Returns the type of a structure in the text form.
pub(super) fn type_text(shapes: &[Shape], shape: usize) -> String {
    let fields = shapes[shape].fields.iter();
    let fields: Vec<String> = fields.map(|field| field_text(shapes, *field)).collect();
    format!("{{{}}}", fields.join(", "))
}

fn field_text(shapes: &[Shape], field: Field) -> String {
    match field {
        Field::Number => "f64".into(),
        Field::Index | Field::Word(_) => "i64".into(),
        Field::Pair => "{i32, i32}".into(),
        Field::Pointer(_) | Field::Link(_) => "ptr".into(),
        Field::Union(_) => "{i64, i64}".into(),
        Field::Row(_, count) => format!("[{count} x ptr]"),
        Field::Numbers(count) => format!("[{count} x f64]"),
        Field::Nested(shape) => type_text(shapes, shape),
        Field::Nests(shape, count) => format!("[{count} x {}]", type_text(shapes, shape)),
    }
}

/// The numbers of the scalar TBAA types; the pointers to structures and the structures follow.
const CHAR: usize = 1;
const LONG: usize = 2;
const DOUBLE: usize = 3;
const INT: usize = 4;
const NUMBERS: usize = 6;
const CODE: usize = 7;
const FIRST: usize = 8;

/// Returns the TBAA type of a pointer.
pub(super) fn pointer_type(shapes: &[Shape], pointee: Pointee) -> usize {
    match pointee {
        Pointee::Object(shape) => FIRST + shape,
        Pointee::Cell(shape) => FIRST + shapes.len() + shape,
        Pointee::Numbers => NUMBERS,
        Pointee::Code => CODE,
    }
}

fn structure_type(shapes: &[Shape], shape: usize) -> usize {
    FIRST + 2 * shapes.len() + shape
}

/// Returns the TBAA type of a member. An array has the type of bytes, as clang gives it.
fn member_type(shapes: &[Shape], field: Field) -> usize {
    match field {
        Field::Number => DOUBLE,
        Field::Index | Field::Word(_) => LONG,
        Field::Pair => INT,
        Field::Pointer(pointee) => pointer_type(shapes, pointee),
        Field::Link(shape) => pointer_type(shapes, Pointee::Object(shape)),
        Field::Nested(shape) => structure_type(shapes, shape),
        Field::Union(_) | Field::Row(..) | Field::Numbers(_) | Field::Nests(..) => CHAR,
    }
}

/// Returns the lines of a program's TBAA types.
pub(super) fn tbaa_text(shapes: &[Shape]) -> String {
    let mut text = String::from(
        "tbaa 0 = \"root\" ()\ntbaa 1 = \"char\" (0: 0)\ntbaa 2 = \"long\" (0: 1)\n\
         tbaa 3 = \"double\" (0: 1)\ntbaa 4 = \"int\" (0: 1)\ntbaa 5 = \"any pointer\" (0: 1)\n\
         tbaa 6 = \"p1 double\" (0: 5)\ntbaa 7 = \"p1 code\" (0: 5)\n",
    );
    for shape in 0..shapes.len() {
        let own = pointer_type(shapes, Pointee::Object(shape));
        let _ = writeln!(text, "tbaa {own} = \"p1 s{shape}\" (0: 5)");
    }
    for shape in 0..shapes.len() {
        let own = pointer_type(shapes, Pointee::Cell(shape));
        let _ = writeln!(text, "tbaa {own} = \"p2 s{shape}\" (0: 5)");
    }
    for (number, shape) in shapes.iter().enumerate() {
        let mut members = Vec::new();
        for (field, offset) in shape.fields.iter().zip(&shape.offsets) {
            match field {
                Field::Pair => {
                    members.push(format!("{offset}: {INT}"));
                    members.push(format!("{}: {INT}", offset + 4));
                }
                Field::Union(_) => {
                    members.push(format!("{offset}: {LONG}"));
                    members.push(format!("{}: {CHAR}", offset + 8));
                }
                _ => members.push(format!("{offset}: {}", member_type(shapes, *field))),
            }
        }
        let own = structure_type(shapes, number);
        let _ = writeln!(text, "tbaa {own} = \"s{number}\" ({})", members.join(", "));
    }
    text
}

/// Returns the tag of an access to a scalar outside structures.
pub(super) fn scalar_tag(access: usize) -> String {
    format!(" !tbaa({access}, {access}, 0)")
}

/// Returns the tag of an access to a member, `inside` bytes behind its start.
pub(super) fn member_tag(shapes: &[Shape], shape: usize, field: usize, inside: u64) -> String {
    let own = &shapes[shape];
    let access = match own.fields[field] {
        Field::Union(_) if inside == 0 => LONG,
        Field::Union(_) => CHAR,
        Field::Row(pointee, _) => {
            return scalar_tag(pointer_type(shapes, Pointee::Object(pointee)));
        }
        Field::Numbers(_) => return scalar_tag(DOUBLE),
        other => member_type(shapes, other),
    };
    let base = structure_type(shapes, shape);
    format!(" !tbaa({base}, {access}, {})", own.offsets[field] + inside)
}

/// Returns the tag of floats outside structures.
pub(super) fn number_tag() -> String {
    scalar_tag(DOUBLE)
}
