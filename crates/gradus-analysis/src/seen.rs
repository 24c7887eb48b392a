//! What a word of memory was seen to be: a set of float formats, pointer, integer.

use gradus_ir::{Body, FloatKind, Op, OpKind, TbaaTypeId, Unit};

/// A set of word kinds, with the weaker evidence of declared types kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen(u32);

const KINDS: [FloatKind; 7] = [
    FloatKind::F16,
    FloatKind::BF16,
    FloatKind::F32,
    FloatKind::F64,
    FloatKind::X86F80,
    FloatKind::F128,
    FloatKind::PpcF128,
];

impl Seen {
    /// Nothing.
    pub const NOTHING: Seen = Seen(0);
    /// A pointer.
    pub const POINTER: Seen = Seen(1 << 8);
    /// A number that is no float.
    pub const INTEGER: Seen = Seen(1 << 9);
    /// Written by code that is not seen.
    pub const UNSEEN: Seen = Seen(1 << 10);
    const DECLARED_SHIFT: u32 = 16;

    /// A float of a format.
    pub fn float(kind: FloatKind) -> Seen {
        Seen(1 << KINDS.iter().position(|k| *k == kind).unwrap_or(0))
    }
    /// The same kinds as mere declarations, which count only where no access tells more.
    #[must_use]
    pub fn declared(self) -> Seen {
        Seen((self.0 & 0xffff) << Seen::DECLARED_SHIFT)
    }
    /// Adds the kinds of `other`; gives whether that was news.
    pub fn add(&mut self, other: &Seen) -> bool {
        let old = self.0;
        self.0 |= other.0;
        self.0 != old
    }
    /// Whether nothing is known.
    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }
    /// The kinds that count: those of accesses, else those declared.
    #[must_use]
    pub fn settled(self) -> Seen {
        match self.0 & 0xffff {
            0 => Seen(self.0 >> Seen::DECLARED_SHIFT),
            kinds => Seen(kinds),
        }
    }
    /// Whether a declaration tells of it.
    pub fn is_declared(self) -> bool {
        self.0 >> Seen::DECLARED_SHIFT != 0
    }
    /// Whether it is one kind, or nothing.
    pub fn is_single(self) -> bool {
        (self.0 & 0xffff).count_ones() <= 1
    }
    /// Whether it holds all kinds of `other`.
    pub fn has(self, other: Seen) -> bool {
        self.0 & other.0 == other.0
    }
    /// The float formats, without declared ones.
    pub fn floats(self) -> impl Iterator<Item = FloatKind> {
        KINDS
            .into_iter()
            .filter(move |kind| self.has(Seen::float(*kind)))
    }
    /// The only float format; `None` where there is none or more than one.
    pub fn float_kind(self) -> Option<FloatKind> {
        let mut kinds = self.floats();
        let kind = kinds.next()?;
        kinds.next().is_none().then_some(kind)
    }
    /// Whether some float format was seen.
    pub fn has_float(self) -> bool {
        self.0 & 0x7f != 0
    }
    /// The size of the widest kind that it may be, declared or not; at least 1.
    pub fn grain_bytes(self) -> i64 {
        let kinds = Seen(self.0 | self.0 >> Seen::DECLARED_SHIFT);
        let floats = kinds.floats().map(|kind| i64::from(kind.bits() / 8));
        let pointer = kinds.has_pointer().then_some(8);
        floats.chain(pointer).max().unwrap_or(1)
    }
    /// Whether a pointer was seen.
    pub fn has_pointer(self) -> bool {
        self.has(Seen::POINTER)
    }
    /// Whether an integer was seen.
    pub fn has_integer(self) -> bool {
        self.has(Seen::INTEGER)
    }
}

/// The words of a structure of type-based alias analysis, by their offsets; those that it calls
/// characters may be anything and are left out.
pub(crate) fn members_of_tbaa(unit: &Unit, base: TbaaTypeId) -> Vec<(u64, Seen)> {
    let mut list = Vec::new();
    let mut work = vec![(0, base)];
    while let Some((offset, ty)) = work.pop() {
        let seen = of_tbaa(unit, ty);
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

/// The most members of a structure that are looked at.
const MEMBERS_MAX: usize = 256;

/// What the front end says that a load or store accesses.
pub(crate) fn of_access(unit: &Unit, body: &Body, op: Op) -> Seen {
    let Some(tag) = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa) else {
        return Seen::NOTHING;
    };
    let value = match body.kind(op) {
        OpKind::Load(_) => body.result(op),
        OpKind::Store(_) => body.operand(op, 0),
        _ => return of_tbaa(unit, tag.access),
    };
    let in_descriptor = unit.tbaa_types[tag.access].name == DESCRIPTOR_MEMBER;
    match in_descriptor && unit.types.int_bits(body.ty(value)).is_some() {
        true => Seen::INTEGER,
        false => of_tbaa(unit, tag.access),
    }
}

/// flang's name for the members of array descriptors: one address, else integers (bounds, strides, sizes, codes).
const DESCRIPTOR_MEMBER: &str = "descriptor member";

/// Whether the front end names what a load or store accesses as an integer member of a structure.
pub(crate) fn is_integer_member(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    tag.is_some_and(|tag| tag.base != tag.access && of_tbaa(unit, tag.access).has_integer())
}

/// Whether the front end names what a load or store accesses as an integer that stands beside links of one of C++'s
/// containers: the number of elements in the head of a list, a colour in a tree, a member of a structure that a
/// container is a member of.
///
/// The last link of a list leads to its head, which lies in the container, so that head and nodes are one class: where
/// the head, or what is around it, has an integer, a node may have a floating-point number. Where it lies does not tell
/// them apart, but its name does. Other names are not believed, as programs look at the bits of numbers under them.
pub(crate) fn is_beside_links(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    tag.is_some_and(|tag| {
        of_tbaa(unit, tag.access).has_integer()
            && (unit.tbaa_types[tag.access].name == TREE_COLOUR
                || tag.base != tag.access && holds_links(unit, tag.base))
    })
}

/// Whether a structure has links between nodes of a container among its members, and theirs.
fn holds_links(unit: &Unit, base: TbaaTypeId) -> bool {
    // table
    const LINKS: &[&str] = &[
        "_ZTSNSt8__detail15_List_node_baseE",
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

/// The colour of a node of libstdc++'s trees, an enumeration; others pass as bytes.
const TREE_COLOUR: &str = "_ZTSSt14_Rb_tree_color";

/// Whether the front end names what a load or store accesses: as anything but bytes.
pub(crate) fn is_named(unit: &Unit, body: &Body, op: Op) -> bool {
    let tag = body.ops[op].meta.and_then(|id| unit.meta(id).tbaa);
    tag.is_some_and(|tag| unit.tbaa_types[tag.access].name != BYTES)
}

/// Whether the front end names what it accesses anywhere in a body: then what has no name there is bytes.
pub(crate) fn names_accesses(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root()).any(|op| is_named(unit, body, op))
}

const BYTES: &str = "omnipotent char";

/// What type-based alias analysis tells about a word: the front ends' names of scalar types.
pub(crate) fn of_tbaa(unit: &Unit, ty: TbaaTypeId) -> Seen {
    // table
    const NAMES: &[(&str, Seen)] = &[
        ("double", Seen(1 << 3)),
        ("float", Seen(1 << 2)),
        ("any pointer", Seen::POINTER),
        ("vtable pointer", Seen::POINTER),
        ("int", Seen::INTEGER),
        ("short", Seen::INTEGER),
        ("long", Seen::INTEGER),
        ("long long", Seen::INTEGER),
        ("__int128", Seen::INTEGER),
        ("bool", Seen::INTEGER),
        ("_Bool", Seen::INTEGER),
        (TREE_COLOUR, Seen::INTEGER),
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
    Seen::NOTHING
}
