//! Inlining of direct calls.
//!
//! - Static allocas of the callee move to the caller's entry, or to the start of the enclosing task,
//!   iteration or rank, and are private there.
//! - Each inlined copy receives fresh alias scopes, because an alias scope holds within one execution of the
//!   callee.
//! - Debug locations record the call site as `inlined_at`.
//! - Allocas of unknown size, or in branches and loops, stay in place if the caller requests it
//!   ([`inline_region_body`]). Stack save and restore around the inlined code then replace the deallocation at the
//!   callee's return.

use crate::rewrite::clone::{ValueMap, clone_op};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::{
    AllocaStorage, AttrSet, Body, Builder, FuncId, LocId, Location, Op, OpKind, ScopeId, TailKind,
    Type, Unit, Value,
};
use std::collections::HashMap;
use std::fmt;

/// Reason for not inlining a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInlined {
    /// The op is not a plain call of the function with matching arguments.
    Call,
    /// The function has no single return at its end.
    Return,
    /// The function has allocas of unknown size or within branches and loops.
    Allocations,
    /// An attribute of the function, a parameter or a call forbids duplication of the code.
    Attributes,
}

impl fmt::Display for NotInlined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotInlined::Call => "the op is not a plain call of the function",
            NotInlined::Return => "the function has no single return at its end",
            NotInlined::Allocations => {
                "the function allocates stack memory of unknown size, or in a branch or loop"
            }
            NotInlined::Attributes => "an attribute forbids inlining",
        })
    }
}

/// Function attributes that tie code to its stack frame or floating-point mode.
const FRAME_BOUND: &[&str] = &["returns_twice", "naked", "strictfp", "presplitcoroutine"];
/// Parameter attributes that give the callee memory distinct from the caller's.
const CALLEE_MEMORY: &[&str] = &[
    "byval",
    "inalloca",
    "preallocated",
    "swifterror",
    "swiftself",
];

/// Replaces `call` in `caller` by the code of `callee`, the body of the called function. `caller` and
/// `callee` must be distinct functions.
///
/// # Errors
/// Returns an error, and edits nothing, if inlining would change the meaning.
pub fn inline_call(
    unit: &mut Unit,
    caller: &mut Body,
    call: Op,
    func: FuncId,
    callee: &Body,
) -> Result<(), NotInlined> {
    check_call(unit, caller, call, func, callee)?;
    check_code(unit, func, callee)?;
    if callee
        .walk(callee.root())
        .any(|op| is_in_place_alloca(callee, op))
    {
        return Err(NotInlined::Allocations);
    }
    inline_body(unit, caller, call, callee, None);
    Ok(())
}

/// Inlines the body of an outlined region or task into its region in the caller, as [`inline_call`] does.
/// Also accepts variable-length arrays.
///
/// # Errors
/// Returns an error, and edits nothing, if inlining would change the meaning.
pub fn inline_region_body(
    unit: &mut Unit,
    caller: &mut Body,
    call: Op,
    func: FuncId,
    callee: &Body,
) -> Result<(), NotInlined> {
    check_call(unit, caller, call, func, callee)?;
    can_inline_region_body(unit, func, callee)?;
    let given_back = allocas_live_until_return(unit, callee).then(|| declare_stack_functions(unit));
    inline_body(unit, caller, call, callee, given_back);
    Ok(())
}

/// Checks whether [`inline_region_body`] can inline `callee` at every plain call.
///
/// # Errors
/// Returns the reason that forbids inlining.
pub fn can_inline_region_body(unit: &Unit, func: FuncId, callee: &Body) -> Result<(), NotInlined> {
    check_code(unit, func, callee)?;
    let saves = |op: Op| saves_stack(unit, callee, op);
    let is_foreign =
        |op: Op| is_in_place_alloca(callee, op) && callee.enclosing_strand(op) != callee.root();
    match callee.walk(callee.root()).any(is_foreign) && !callee.walk(callee.root()).any(saves) {
        true => Err(NotInlined::Allocations),
        false => Ok(()),
    }
}

/// Returns whether the callee has in-place allocas that live until its return, without an earlier stack
/// restore.
fn allocas_live_until_return(unit: &Unit, callee: &Body) -> bool {
    let saves = |op: Op| saves_stack(unit, callee, op);
    let in_place = |op: Op| is_in_place_alloca(callee, op);
    let mut outermost = callee.ops_in(callee.root()).take_while(|&op| !saves(op));
    let mut all = callee.walk(callee.root());
    outermost.any(in_place) || all.any(in_place) && !callee.walk(callee.root()).any(saves)
}

fn saves_stack(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    known == Some(ExternalFn::Marker(CompilerIntrinsic::StackSave))
}

/// Declares `llvm.stacksave` and `llvm.stackrestore`.
fn declare_stack_functions(unit: &mut Unit) -> (FuncId, FuncId) {
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    let (saving, restoring) = (
        unit.types.func(ptr, Vec::new()),
        unit.types.func(void, vec![ptr]),
    );
    let save = unit.declare("llvm.stacksave.p0", saving, AttrSet::default());
    let restore = unit.declare("llvm.stackrestore.p0", restoring, AttrSet::default());
    (save, restore)
}

/// Returns whether an op is an alloca whose position determines its size or lifetime.
fn is_in_place_alloca(body: &Body, op: Op) -> bool {
    if !matches!(body.kind(op), OpKind::Alloca(_)) {
        return false;
    }
    // A private alloca at the start of a task, iteration or rank is copied with its region.
    let at_start = body.parent(op) == Some(body.enclosing_strand(op));
    !at_start || body.as_const(body.operand(op, 0)).is_none()
}

/// Replaces the call by the callee's code. `given_back`: functions that save and restore the stack around the
/// inlined code.
fn inline_body(
    unit: &mut Unit,
    caller: &mut Body,
    call: Op,
    callee: &Body,
    given_back: Option<(FuncId, FuncId)>,
) {
    let args = unit.call_args(caller, call);
    let site = caller.ops[call].loc;
    let mut map = ValueMap::zip(callee.params(), &args);
    let mut copies = InlinedMetadata {
        site,
        locs: HashMap::new(),
        scopes: HashMap::new(),
    };
    let home = caller.enclosing_strand(call);
    let private = home != caller.root();
    let first = caller.first(home);
    let mut b = Builder::new(unit, caller);
    let mut returned = None;
    let saved = given_back.map(|(save, restore)| {
        b.set_insertion_before(call);
        let saved = b.call(save, &[]);
        (b.body.result(saved), restore)
    });
    for op in callee.ops_in(callee.root()) {
        match callee.kind(op) {
            OpKind::Return => {
                let value = callee.operands(op).next();
                returned = value.map(|v| mapped_or_constant(&mut b, callee, &map, v));
                continue;
            }
            OpKind::Alloca(_) if !is_in_place_alloca(callee, op) => match first {
                Some(first) => b.set_insertion_before(first),
                None => b.set_insertion_before(call),
            },
            _ => b.set_insertion_before(call),
        };
        let copy = clone_op(callee, op, &mut b, &mut map);
        let inside = b.body.op_regions(copy).iter().flat_map(|r| b.body.walk(*r));
        let copied: Vec<Op> = std::iter::once(copy).chain(inside).collect();
        for op in copied.into_iter().filter(|_| private) {
            if let OpKind::Alloca(info) = &mut b.body.ops[op].kind
                && info.storage == AllocaStorage::Frame
            {
                info.storage = AllocaStorage::Private;
            }
        }
        copies.update_op(&mut b, copy);
    }
    if let Some((saved, restore)) = saved {
        b.set_insertion_before(call);
        b.call(restore, &[saved]);
    }
    if let (Some(&result), Some(value)) = (caller.results(call).first(), returned) {
        caller.replace_uses(result, value);
    }
    caller.erase(call);
}

fn mapped_or_constant(b: &mut Builder, callee: &Body, map: &ValueMap, value: Value) -> Value {
    match (map.get(value), callee.as_const(value)) {
        (Some(copy), _) => copy,
        (None, Some(id)) => b.constant(id),
        (None, None) => unreachable!("a value of the callee has no copy"),
    }
}

fn check_call(
    unit: &Unit,
    caller: &Body,
    call: Op,
    func: FuncId,
    callee: &Body,
) -> Result<(), NotInlined> {
    let function = &unit.functions[func];
    let OpKind::Call(info) = caller.kind(call) else {
        return Err(NotInlined::Call);
    };
    let args = unit.call_args(caller, call);
    let variadic = matches!(
        unit.types.get(function.ty),
        Type::Func { variadic: true, .. }
    );
    let fits = unit.callee(caller, call) == Some(func)
        && info.signature == function.ty
        && info.convention == function.convention
        && info.bundles.is_empty()
        && args.len() == callee.params().len()
        && !variadic;
    if !fits {
        return Err(NotInlined::Call);
    }
    match info.tail {
        TailKind::MustTail => Err(NotInlined::Attributes),
        _ => Ok(()),
    }
}

fn check_code(unit: &Unit, func: FuncId, callee: &Body) -> Result<(), NotInlined> {
    let attrs = unit.attrs(unit.functions[func].attrs);
    if forbids_inlining(attrs, callee.params().len()) {
        return Err(NotInlined::Attributes);
    }
    let last = callee.last(callee.root());
    if !last.is_some_and(|l| matches!(callee.kind(l), OpKind::Return)) {
        return Err(NotInlined::Return);
    }
    for op in callee.walk(callee.root()) {
        let outermost = callee.parent(op) == Some(callee.root());
        match callee.kind(op) {
            OpKind::Return if !outermost => return Err(NotInlined::Return),
            OpKind::Alloca(alloca) if alloca.inalloca => return Err(NotInlined::Allocations),
            OpKind::Call(info) if info.tail == TailKind::MustTail => {
                return Err(NotInlined::Return);
            }
            OpKind::Foreign(_) => return Err(NotInlined::Attributes),
            _ => {}
        }
    }
    Ok(())
}

fn forbids_inlining(attrs: &AttrSet, params: usize) -> bool {
    FRAME_BOUND
        .iter()
        .any(|name| attrs.function(name).is_some())
        || (0..params).any(|i| {
            CALLEE_MEMORY
                .iter()
                .any(|name| attrs.param(i, name).is_some())
        })
}

/// Locations and alias scopes shared by all ops of an inlined copy.
struct InlinedMetadata {
    site: Option<LocId>,
    locs: HashMap<LocId, LocId>,
    scopes: HashMap<ScopeId, ScopeId>,
}

impl InlinedMetadata {
    /// Assigns fresh locations and alias scopes to a copied op and its nested ops.
    fn update_op(&mut self, b: &mut Builder, copy: Op) {
        let mut open = vec![copy];
        while let Some(op) = open.pop() {
            for &region in b.body.op_regions(op) {
                open.extend(b.body.ops_in(region));
            }
            let loc = b.body.ops[op].loc;
            b.body.ops[op].loc = match (self.site, loc) {
                (Some(site), Some(loc)) => Some(self.inlined_location(b, loc, site)),
                (site, _) => site,
            };
            self.refresh_alias_scopes(b, op);
            if let OpKind::Call(info) = &mut b.body.ops[op].kind {
                info.tail = TailKind::None;
            }
        }
    }

    /// Returns `loc` as inlined at the call site `site`.
    fn inlined_location(&mut self, b: &mut Builder, loc: LocId, site: LocId) -> LocId {
        // The outermost location of the chain is inlined at the call.
        let mut chain = vec![loc];
        let mut known = None;
        while let Some(&at) = chain.last() {
            known = self.locs.get(&at).copied();
            let outer = b.unit.locations[at].inlined_at;
            match (known, outer) {
                (None, Some(outer)) => chain.push(outer),
                _ => break,
            }
        }
        if known.is_some() {
            chain.pop();
        }
        let mut outer = known.unwrap_or(site);
        while let Some(at) = chain.pop() {
            let copy = Location {
                inlined_at: Some(outer),
                ..b.unit.locations[at].clone()
            };
            outer = b.unit.locations.push(copy);
            self.locs.insert(at, outer);
        }
        outer
    }

    fn refresh_alias_scopes(&mut self, b: &mut Builder, op: Op) {
        let Some(id) = b.body.ops[op].meta else {
            // Not an error: the op has no alias metadata.
            return;
        };
        let mut meta = b.unit.meta(id).clone();
        if meta.alias_scopes.is_empty() && meta.noalias.is_empty() {
            return;
        }
        for list in [&mut meta.alias_scopes, &mut meta.noalias] {
            for scope in list.iter_mut() {
                *scope = *self.scopes.entry(*scope).or_insert_with(|| {
                    let mut copy = b.unit.scopes[*scope].clone();
                    copy.host = None;
                    b.unit.scopes.push(copy)
                });
            }
            list.sort_unstable();
        }
        b.body.ops[op].meta = b.unit.intern_meta(meta);
    }
}
