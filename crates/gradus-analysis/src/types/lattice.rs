//! Types observed in a memory cell: the lattice of float formats, pointer and integer.

use gradus_ir::{Body, FloatKind, Op, OpKind, TbaaTypeId, Unit};

/// A set of cell types. Declared types are separate, weaker evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CellType(u32);

const KINDS: [FloatKind; 7] = [
    FloatKind::F16,
    FloatKind::BF16,
    FloatKind::F32,
    FloatKind::F64,
    FloatKind::X86F80,
    FloatKind::F128,
    FloatKind::PpcF128,
];

impl CellType {
    /// The empty set.
    pub const NOTHING: CellType = CellType(0);
    /// A pointer.
    pub const POINTER: CellType = CellType(1 << 8);
    /// A number that is not a float.
    pub const INTEGER: CellType = CellType(1 << 9);
    /// Written by unknown code.
    pub const UNKNOWN_WRITE: CellType = CellType(1 << 10);
    const DECLARED_SHIFT: u32 = 16;

    /// Returns the set with one float format.
    pub fn float(kind: FloatKind) -> CellType {
        CellType(1 << KINDS.iter().position(|k| *k == kind).unwrap_or(0))
    }
    /// Returns the kinds as declared types. Declared types count only without evidence from accesses.
    #[must_use]
    pub fn declared(self) -> CellType {
        CellType((self.0 & 0xffff) << CellType::DECLARED_SHIFT)
    }
    /// Adds the kinds of `other`. Returns true if the set grew.
    pub fn add(&mut self, other: &CellType) -> bool {
        let old = self.0;
        self.0 |= other.0;
        self.0 != old
    }
    /// Returns true if the set is empty.
    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }
    /// Returns the effective kinds: the kinds of accesses or, without any, the declared kinds.
    #[must_use]
    pub fn effective(self) -> CellType {
        match self.0 & 0xffff {
            0 => CellType(self.0 >> CellType::DECLARED_SHIFT),
            kinds => CellType(kinds),
        }
    }
    /// Returns true if a declaration contributed.
    pub fn is_declared(self) -> bool {
        self.0 >> CellType::DECLARED_SHIFT != 0
    }
    /// Returns true if an access contributed.
    pub fn is_accessed(self) -> bool {
        self.0 & 0xffff != 0
    }
    /// Returns true if accesses saw at most one kind.
    pub fn is_single(self) -> bool {
        (self.0 & 0xffff).count_ones() <= 1
    }
    /// Returns true if all kinds of `other` are present.
    pub fn has(self, other: CellType) -> bool {
        self.0 & other.0 == other.0
    }
    /// Iterates over the float formats of accesses.
    pub fn floats(self) -> impl Iterator<Item = FloatKind> {
        KINDS
            .into_iter()
            .filter(move |kind| self.has(CellType::float(*kind)))
    }
    /// Returns the only float format of accesses, or `None` if there is none or more than one.
    pub fn float_kind(self) -> Option<FloatKind> {
        let mut kinds = self.floats();
        let kind = kinds.next()?;
        kinds.next().is_none().then_some(kind)
    }
    /// Returns true if accesses saw some float format.
    pub fn has_float(self) -> bool {
        self.0 & 0x7f != 0
    }
    /// Returns the size in bytes of the widest possible kind, declared or accessed; at least 1.
    pub fn granularity_bytes(self) -> i64 {
        let kinds = CellType(self.0 | self.0 >> CellType::DECLARED_SHIFT);
        let floats = kinds.floats().map(|kind| i64::from(kind.bits() / 8));
        let pointer = kinds.has_pointer().then_some(8);
        floats.chain(pointer).max().unwrap_or(1)
    }
    /// Returns true if accesses saw a pointer.
    pub fn has_pointer(self) -> bool {
        self.has(CellType::POINTER)
    }
    /// Returns true if accesses saw an integer.
    pub fn has_integer(self) -> bool {
        self.has(CellType::INTEGER)
    }
}

/// Returns the member types of a TBAA structure, by offset. Character members may hold any type and are
/// omitted.
pub(crate) fn tbaa_members(unit: &Unit, base: TbaaTypeId) -> Vec<(u64, CellType)> {
    let mut list = Vec::new();
    let mut work = vec![(0, base)];
    while let Some((offset, ty)) = work.pop() {
        let seen = tbaa_type(unit, ty);
        if !seen.is_nothing() {
            list.push((offset, seen));
            continue;
        }
        let members = &unit.tbaa_types[ty].members;
        let is_scalar = matches!(members.as_slice(), [] | [(0, _)]);
        if list.len() + work.len() < MEMBERS_MAX && !(is_scalar && ty != base) {
            work.extend(members.iter().map(|(at, member)| (offset + at, *member)));
        }
    }
    list
}

/// Maximal number of structure members visited.
const MEMBERS_MAX: usize = 256;

/// Returns the type of a load or store according to its TBAA tag.
pub(crate) fn access_type(unit: &Unit, body: &Body, op: Op) -> CellType {
    let Some(tag) = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa) else {
        return CellType::NOTHING;
    };
    let value = match body.kind(op) {
        OpKind::Load(_) => body.result(op),
        OpKind::Store(_) => body.operand(op, 0),
        _ => return tbaa_type(unit, tag.access),
    };
    let in_descriptor = unit.tbaa_types[tag.access].name == DESCRIPTOR_MEMBER;
    match in_descriptor && unit.types.int_bits(body.ty(value)).is_some() {
        true => CellType::INTEGER,
        false => tbaa_type(unit, tag.access),
    }
}

/// Returns true if the TBAA tag of a load names a member of a character type. clang tags the members of unions and the
/// elements of member arrays without their structure: only a member of its own has a structure in the tag.
pub(crate) fn loads_character_member(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    matches!(body.kind(op), OpKind::Load(_))
        && tag.is_some_and(|tag| {
            let bits = unit.types.int_bits(body.ty(body.result(op)));
            bits.is_some_and(|bits| bits < FloatKind::F32.bits())
                && tag.base != tag.access
                && unit.tbaa_types[tag.access].name == BYTES
        })
}

/// flang's TBAA name for members of array descriptors: one address, otherwise integers (bounds, strides,
/// sizes, type codes).
const DESCRIPTOR_MEMBER: &str = "descriptor member";

/// Returns true if the TBAA tag of a load or store names an integer member of a structure.
pub(crate) fn is_integer_member(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    tag.is_some_and(|tag| tag.base != tag.access && tbaa_type(unit, tag.access).has_integer())
}

/// Returns true if the TBAA tag names an integer next to links of a C++ container. Examples: the element
/// count in a list head, the colour of a tree node, a member of a structure that contains a container.
///
/// The last link of a list points to the list head inside the container, which puts head and nodes into one
/// alias set. An integer in or around the head may therefore share an offset with a float of a node. The
/// offset does not separate the two, but the TBAA name does. Names of other integers are not trusted,
/// because programs inspect float bits under such names.
pub(crate) fn is_next_to_pointers(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    tag.is_some_and(|tag| {
        tbaa_type(unit, tag.access).has_integer()
            && (unit.tbaa_types[tag.access].name == TREE_COLOUR
                || tag.base != tag.access && contains_container_links(unit, tag.base))
    })
}

/// Returns true if a structure contains container links, directly or in nested members.
fn contains_container_links(unit: &Unit, base: TbaaTypeId) -> bool {
    // table
    const LINKS: &[&str] = &[
        "_ZTSNSt8__detail15_List_node_baseE",
        "_ZTSNSt8__detail20_Prime_rehash_policyE",
        "_ZTSSt18_Rb_tree_node_base",
        "_ZTSNSt8__detail15_Hash_node_baseE",
        "_ZTSSt19_Fwd_list_node_base",
    ];
    let (mut work, mut next) = (vec![base], 0);
    while let Some(&ty) = work.get(next) {
        let data = &unit.tbaa_types[ty];
        if LINKS.contains(&data.name.as_str()) {
            return true;
        }
        for (_, member) in &data.members {
            if work.len() < MEMBERS_MAX && !work.contains(member) {
                work.push(*member);
            }
        }
        next += 1;
    }
    false
}

/// The colour enumeration of libstdc++'s tree nodes. Clang tags other enumerations as characters.
const TREE_COLOUR: &str = "_ZTSSt14_Rb_tree_color";

/// Returns true if the TBAA tag of a load or store names a type other than bytes.
pub(crate) fn has_tbaa_name(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    tag.is_some_and(|tag| unit.tbaa_types[tag.access].name != BYTES)
}

/// Returns true if any access of a body has a TBAA name. In such a body, an access without a name is an
/// access to bytes.
pub(crate) fn has_tbaa_names(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root())
        .any(|op| has_tbaa_name(unit, body, op))
}

const BYTES: &str = "omnipotent char";

/// Returns the cell type of a TBAA type, by the front ends' names of scalar types.
pub(crate) fn tbaa_type(unit: &Unit, ty: TbaaTypeId) -> CellType {
    // table
    const NAMES: &[(&str, CellType)] = &[
        ("double", CellType(1 << 3)),
        ("float", CellType(1 << 2)),
        ("any pointer", CellType::POINTER),
        ("vtable pointer", CellType::POINTER),
        ("int", CellType::INTEGER),
        ("short", CellType::INTEGER),
        ("long", CellType::INTEGER),
        ("long long", CellType::INTEGER),
        ("__int128", CellType::INTEGER),
        ("bool", CellType::INTEGER),
        ("_Bool", CellType::INTEGER),
        (TREE_COLOUR, CellType::INTEGER),
    ];
    let mut at = Some(ty);
    for _ in 0..8 {
        let Some(id) = at else { break };
        let data = &unit.tbaa_types[id];
        if let Some((_, seen)) = NAMES.iter().find(|(name, _)| *name == data.name) {
            return *seen;
        }
        at = match data.members.as_slice() {
            [(0, parent)] => Some(*parent),
            _ => None,
        };
    }
    CellType::NOTHING
}
