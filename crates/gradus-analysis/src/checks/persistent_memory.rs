//! Persistent memory: active memory that outlives the call because a global retains its address.
//!
//! Shadows of blocks are allocated with the blocks and freed by the reverse pass. A global's shadow would
//! then dangle, or the next call would find stale contents. A block allocated earlier, outside the
//! differentiated code, has no shadow. Neither case is supported; both are refused.
//!
//! Pointers stored before the call may reach a block on several paths. A write through one path may be read
//! through another, and the derivative would be lost. Such memory is refused too. A path may be a
//! variable's name, if functions outside the differentiated code store its address.

use crate::activity::flow_graph;
use crate::activity::flow_graph::ValueAccess;
use crate::activity::memory::{ClassFacts, Facts};
use crate::points_to::alias_sets::{Class, ClassId, Origin};
use crate::types::lattice::Seen;
use gradus_ir::{Body, Code, Diagnostic, FuncId, GlobalId, Op, Symbol, Unit};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Returns a diagnostic for each refused alias set.
pub(crate) fn findings(facts: Facts<'_>, classes: &ClassFacts) -> Vec<Diagnostic> {
    let kept = Kept::by_globals(facts, classes);
    let refused = kept.refused(facts, classes).into_iter();
    refused
        .filter_map(|(class, why)| finding(facts, class, why))
        .collect()
}

/// Memory that exists before or after the call.
#[derive(Default)]
struct Kept {
    /// Blocks reachable from a global, with a global that reaches them.
    blocks: BTreeMap<ClassId, Holder>,
    /// Memory with active floats directly behind such blocks, or reachable from globals with unreadable
    /// initializers.
    lent: BTreeMap<ClassId, GlobalId>,
    /// Memory behind pointers that functions outside the differentiated code may have stored in a global.
    set: BTreeMap<ClassId, GlobalId>,
}

/// Reason of a refusal.
#[derive(Clone, Copy)]
enum Why {
    /// A global retains the address.
    Kept(GlobalId),
    /// The pointee of the first global may be the second global or lie in it.
    Named(GlobalId, GlobalId),
}

#[derive(Clone, Copy)]
struct Holder {
    global: GlobalId,
    /// True if the global itself holds the pointer.
    direct: bool,
}

impl Kept {
    fn by_globals(facts: Facts<'_>, classes: &ClassFacts) -> Kept {
        let mut kept = Kept::default();
        for (holder, class) in facts.memory.classes() {
            let Some(global) = holder_of(facts, class) else {
                continue;
            };
            kept.may_be_set(facts, classes, holder);
            let is_freed = |class| classes.is_surely_freed(class);
            let is_left = |class| classes.is_only_written(class);
            for (class, direct) in blocks_of(facts, holder, &is_freed, &is_left) {
                kept.blocks.insert(class, Holder { global, direct });
                let held = facts.memory.stored(class);
                let active = held
                    .iter()
                    .filter(|held| classes.holds_active_floats(**held));
                kept.lent.extend(active.map(|held| (*held, global)));
            }
        }
        kept
    }

    /// Records the memory reachable from the globals of an alias set that external code sets or whose
    /// initializer is unreadable.
    fn may_be_set(&mut self, facts: Facts<'_>, classes: &ClassFacts, holder: ClassId) {
        let reached = reached(facts, holder);
        for origin in &facts.memory.get(holder).origins {
            let Origin::Global(global) = *origin else {
                continue;
            };
            let active = |class: &ClassId| classes.holds_active_floats(*class);
            if !facts.unit.globals[global].unparsed_symbols.is_empty() {
                let lent = reached.iter().filter(|class| active(class));
                self.lent.extend(lent.map(|class| (*class, global)));
            }
            let how = facts.unit.address_escapes(global);
            if how.is_some_and(|how| {
                how.pointers_stored_by
                    .iter()
                    .any(|by| is_outside(facts, *by))
            }) {
                self.set
                    .extend(reached.iter().map(|class| (*class, global)));
            }
        }
    }

    /// Returns the globals that may be pointees of externally set pointers, with one written and the other
    /// read.
    fn named(&self, facts: Facts<'_>, classes: &ClassFacts) -> BTreeMap<ClassId, Why> {
        let given = facts.closure.globals().iter().filter(|global| {
            let how = facts.unit.address_escapes(**global);
            // External code may have copied the initial value of a variable.
            let gives = |by: &Option<Symbol>| {
                matches!(by, Some(Symbol::Global(_))) || is_outside(facts, *by)
            };
            how.is_some_and(|how| how.stored_by.iter().any(gives))
        });
        let named: BTreeMap<ClassId, GlobalId> = given
            .filter_map(|global| Some((facts.memory.global(*global)?.class, *global)))
            .collect();
        let is_written = |class| classes.is_varied(class) && classes.is_written(class);
        let mut refused = BTreeMap::new();
        for (&class, &global) in &self.set {
            for (&other, &name) in named.iter().filter(|(other, _)| **other != class) {
                let (to, from) = match (is_written(class), is_written(other)) {
                    (true, _) if classes.is_useful(other) => (class, other),
                    (_, true) if classes.is_useful(class) => (other, class),
                    _ => continue,
                };
                if same_floats(facts, to, from) {
                    refused.insert(to, Why::Named(global, name));
                }
            }
        }
        refused
    }

    /// Returns the refused blocks: written with varied values, while active outputs depend on the block or
    /// on a block that may alias. Pointers stored before the call may point anywhere.
    fn refused(&self, facts: Facts<'_>, classes: &ClassFacts) -> BTreeMap<ClassId, Why> {
        let mut refused = self.named(facts, classes);
        let lent = self.lent.iter();
        refused.extend(lent.map(|(class, global)| (*class, Why::Kept(*global))));
        let written = (self.blocks.iter())
            .filter(|(class, _)| classes.is_varied(**class) && classes.is_written(**class));
        for (&class, holder) in written {
            let mut read = self
                .blocks
                .iter()
                .filter(|(read, _)| classes.is_useful(**read));
            if read.any(|(&read, other)| {
                read == class
                    || same_floats(facts, read, class)
                        && !(holder.is_alone(facts.unit) && other.is_alone(facts.unit))
            }) {
                refused.insert(class, Why::Kept(holder.global));
            }
        }
        refused
    }
}

/// Returns the blocks reachable from the memory of variables. The flag is true if the variables themselves
/// hold the pointer. Alias sets selected by `is_left`, and sets reachable only through them, are left out.
fn blocks_of(
    facts: Facts<'_>,
    holder: ClassId,
    is_freed: &dyn Fn(ClassId) -> bool,
    is_left: &dyn Fn(ClassId) -> bool,
) -> Vec<(ClassId, bool)> {
    let own = facts.memory.stored(holder);
    let mut work: Vec<(ClassId, bool)> = own.iter().map(|class| (*class, true)).collect();
    let (mut seen, mut blocks) = (BTreeSet::new(), Vec::new());
    while let Some((class, direct)) = work.pop() {
        let outlives = || outlives(facts.memory.get(class), is_freed(class));
        // A block shares the variable's alias set if the analysis cannot separate them.
        let asked = direct || class == holder;
        if !seen.insert(class) || is_left(class) || asked && !outlives() {
            continue;
        }
        blocks.push((class, direct));
        let held = facts.memory.stored(class);
        work.extend(held.into_iter().map(|class| (class, false)));
    }
    blocks
}

/// Returns a non-constant variable among the origins of an alias set.
fn holder_of(facts: Facts<'_>, class: &Class) -> Option<GlobalId> {
    class.origins.iter().find_map(|origin| match origin {
        Origin::Global(global) if !facts.unit.globals[*global].constant => Some(*global),
        _ => None,
    })
}

/// Returns the pointer blocks that globals retain and into which the call graph only stores addresses. No
/// load from such a block yields a pointer to memory for which `is_active` holds. Such blocks need no
/// shadow.
pub(crate) fn only_written(
    facts: Facts<'_>,
    is_freed: &dyn Fn(ClassId) -> bool,
    is_active: &dyn Fn(ClassId) -> bool,
) -> BTreeSet<ClassId> {
    let mut blocks = BTreeSet::new();
    for (holder, class) in facts.memory.classes() {
        if holder_of(facts, class).is_some() {
            let list = blocks_of(facts, holder, is_freed, &|_| false).into_iter();
            blocks.extend(list.map(|(block, _)| block));
        }
    }
    blocks.retain(|block| {
        let origins = &facts.memory.get(*block).origins;
        let is_heap = |o: &Origin| matches!(o, Origin::Heap(..));
        // The head of a container lies in the variable and shares an alias set with the nodes.
        let may_be = |o: &Origin| is_heap(o) || matches!(o, Origin::Global(_));
        !is_active(*block)
            && origins.iter().all(may_be)
            && (origins.is_empty() || origins.iter().any(is_heap))
    });
    loop {
        let read = read_back(facts, &blocks, is_active);
        if read.is_empty() {
            return blocks;
        }
        blocks.retain(|block| !read.contains(block));
    }
}

/// Returns the blocks from which the call graph loads pointers that reach active memory.
fn read_back(
    facts: Facts<'_>,
    blocks: &BTreeSet<ClassId>,
    is_active: &dyn Fn(ClassId) -> bool,
) -> BTreeSet<ClassId> {
    let leads = |class: ClassId| {
        !blocks.contains(&class)
            && (is_active(class) || reached(facts, class).into_iter().any(is_active))
    };
    let mut read = BTreeSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            flow_graph::value_accesses(facts.unit, body, op, |touch| {
                let ValueAccess::Load { ptr, value } = touch else {
                    // Not an error: a store loads no address.
                    return;
                };
                let from = facts.memory.places(func, ptr).iter().flatten();
                for block in from.map(|place| place.class) {
                    let taken = facts.memory.places(func, value).iter().flatten();
                    let mut taken: Vec<ClassId> = taken.map(|place| place.class).collect();
                    // The value holds several pointers.
                    let bytes = facts.unit.layout.store_bytes(facts.unit, body.ty(value));
                    if bytes > facts.unit.layout.pointer_bytes {
                        taken.extend(facts.memory.stored(block));
                    }
                    if blocks.contains(&block) && taken.into_iter().any(leads) {
                        read.insert(block);
                    }
                }
            });
        }
    }
    for copy in facts.memory.copies() {
        let (from, to) = (copy.from.class, copy.to.class);
        let held = facts.memory.stored(from);
        if blocks.contains(&from) && !blocks.contains(&to) && held.into_iter().any(leads) {
            read.insert(from);
        }
    }
    read
}

/// Returns all memory reachable from a function's result.
pub(crate) fn returned(facts: Facts<'_>, func: FuncId) -> BTreeSet<ClassId> {
    let places = facts.memory.returned(func).iter().flatten();
    let classes: BTreeSet<ClassId> = places.map(|place| place.class).collect();
    let behind = classes.iter().flat_map(|class| reached(facts, *class));
    behind.chain(classes.iter().copied()).collect()
}

/// Returns all memory reachable from an alias set, transitively.
fn reached(facts: Facts<'_>, holder: ClassId) -> BTreeSet<ClassId> {
    let mut found = BTreeSet::new();
    let mut work = facts.memory.stored(holder);
    while let Some(class) = work.pop() {
        if found.insert(class) {
            work.extend(facts.memory.stored(class));
        }
    }
    found
}

/// Returns true if a function or variable is outside the differentiated code.
fn is_outside(facts: Facts<'_>, symbol: Option<Symbol>) -> bool {
    match symbol {
        None => true,
        Some(Symbol::Func(func)) => !facts.closure.contains(func),
        Some(Symbol::Global(global)) => !facts.closure.globals().contains(&global),
    }
}

impl Holder {
    /// Returns true if no other pointer from before the call reaches the block.
    fn is_alone(self, unit: &Unit) -> bool {
        self.direct && unit.holds_only_fresh_blocks(self.global)
    }
}

/// Returns true if accesses saw floats of one common format in both alias sets.
pub(crate) fn same_floats(facts: Facts<'_>, a: ClassId, b: ClassId) -> bool {
    let (a, b) = (facts.words.seen_anywhere(a), facts.words.seen_anywhere(b));
    a.floats().any(|kind| b.has(Seen::float(kind)))
}

/// Returns true if memory of an alias set may exist after the call, or may have been allocated before the
/// call without a shadow.
fn outlives(class: &Class, is_freed: bool) -> bool {
    let made = class.origins.iter().any(|o| matches!(o, Origin::Heap(..)));
    let has_shadow = |o: &Origin| {
        matches!(
            o,
            Origin::Argument(..) | Origin::Alloca(..) | Origin::Global(_)
        )
    };
    match made {
        true => !is_freed,
        false => !class.origins.iter().any(has_shadow),
    }
}

/// Returns the calls that free blocks, by alias set.
pub(crate) fn frees(facts: Facts<'_>) -> HashMap<ClassId, Vec<(FuncId, Op)>> {
    let mut frees: HashMap<ClassId, Vec<(FuncId, Op)>> = HashMap::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            if let Some(class) = freed_by(facts, func, body, op) {
                frees.entry(class).or_default().push((func, op));
            }
        }
    }
    frees
}

fn freed_by(facts: Facts<'_>, func: FuncId, body: &Body, op: Op) -> Option<ClassId> {
    let callee = facts.unit.callee(body, op)?;
    let argument = facts.unit.known_effects(callee)?.frees?;
    let args = facts.unit.call_args(body, op);
    facts.memory.class(func, *args.get(usize::from(argument))?)
}

fn finding(facts: Facts<'_>, class: ClassId, why: Why) -> Option<Diagnostic> {
    let (func, body, op) = first_store(facts, class).or_else(|| first_pointer(facts, class))?;
    let unit: &Unit = facts.unit;
    let function = &unit.functions[func];
    let name = |global: GlobalId| &unit.globals[global].name;
    let (message, help) = match why {
        Why::Kept(global) => {
            let name = name(global);
            (
                format!("`{name}` keeps memory that carries derivatives from one call to the next"),
                format!(
                    "allocate and free it within the function that is differentiated, or pass `{name}` as an argument"
                ),
            )
        }
        Why::Named(global, other) => {
            let (name, other) = (name(global), name(other));
            (
                format!(
                    "`{name}` may lead to `{other}`, and derivatives do not go from one to the other"
                ),
                format!(
                    "set `{name}` within the function that is differentiated, or use `{other}` by one of the two alone"
                ),
            )
        }
    };
    Some(
        Diagnostic::error(Code::Outlives, message)
            .in_function(function.source_name.as_ref().unwrap_or(&function.name))
            .at(unit.span(body.ops[op].loc), "here")
            .help(help),
    )
}

/// Returns the first op that loads an address of an alias set, or else the first that stores one.
fn first_pointer<'a>(facts: Facts<'a>, class: ClassId) -> Option<(FuncId, &'a Body, Op)> {
    let mut put = None;
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let leads = |value| facts.memory.class(func, value) == Some(class);
            let mut taken = false;
            flow_graph::value_accesses(facts.unit, body, op, |touch| match touch {
                ValueAccess::Load { value, .. } => taken |= leads(value),
                ValueAccess::Store { value, .. } if leads(value) => {
                    put = put.or(Some((func, body, op)));
                }
                ValueAccess::Store { .. } => {}
            });
            if taken {
                return Some((func, body, op));
            }
        }
    }
    put
}

/// Returns the first store of a float to an alias set.
fn first_store<'a>(facts: Facts<'a>, class: ClassId) -> Option<(FuncId, &'a Body, Op)> {
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let mut hit = false;
            flow_graph::value_accesses(facts.unit, body, op, |touch| {
                if let ValueAccess::Store { ptr, value } = touch {
                    hit |= facts.memory.class(func, ptr) == Some(class)
                        && facts.words.carries_float(func, value);
                }
            });
            if hit {
                return Some((func, body, op));
            }
        }
    }
    None
}
