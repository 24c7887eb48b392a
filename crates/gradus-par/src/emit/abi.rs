//! Runtime ABI: declares the `gr_*` entry points of `gradus-rt` as functions of the unit.
//!
//! `gradus-rt` documents the semantics of each entry point.

use gradus_ir::{
    Attr, AttrSet, AttrValue, Builder, ConstKind, FuncId, Global, GlobalId, Initializer, Linkage,
    Symbol, TypeId, Unit, Value,
};

/// A runtime entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    For,
    Reduce,
    Spawn,
    Sync,
    Keep,
    Abandon,
    Thrown,
    Uncaught,
    Hungry,
    Workers,
    Team,
    Ranks,
    Barrier,
    Single,
    Part,
    LoopBegin,
    LoopNext,
    Lock,
    Unlock,
    Enter,
    Leave,
    Final,
    FinalEnd,
    Scratch,
    ScratchEnd,
    Turns,
    TurnMeet,
}

/// The type of a parameter or result of an entry point.
#[derive(Clone, Copy)]
enum Ty {
    Void,
    Bool,
    I32,
    I64,
    Ptr,
}

impl Entry {
    fn signature(self) -> (&'static str, Ty, &'static [Ty]) {
        use Ty::*;
        match self {
            Entry::For => ("gr_for", Void, &[I64, I64, I64, Ptr, Ptr]),
            Entry::Reduce => (
                "gr_reduce",
                Void,
                &[I64, I64, I64, Ptr, Ptr, Ptr, Ptr, I64, Ptr],
            ),
            Entry::Spawn => ("gr_spawn", Void, &[Ptr, Ptr, Ptr, I64]),
            Entry::Sync => ("gr_sync", Void, &[Ptr]),
            Entry::Keep => ("gr_keep", Void, &[Ptr, Ptr]),
            Entry::Abandon => ("gr_abandon", Void, &[Ptr]),
            Entry::Thrown => ("gr_thrown", Ptr, &[Ptr]),
            Entry::Uncaught => ("gr_uncaught", Void, &[Ptr]),
            Entry::Hungry => ("gr_hungry", Bool, &[]),
            Entry::Workers => ("gr_workers", I32, &[]),
            Entry::Team => ("gr_team", Void, &[I32, Ptr, Ptr]),
            Entry::Ranks => ("gr_ranks", I32, &[I32]),
            Entry::Barrier => ("gr_barrier", Void, &[Ptr]),
            Entry::Single => ("gr_single", Bool, &[Ptr]),
            Entry::Part => ("gr_part", I64, &[I64, I64, I64, Ptr]),
            Entry::LoopBegin => ("gr_loop_begin", Void, &[Ptr]),
            Entry::LoopNext => ("gr_loop_next", I64, &[Ptr, I64, I64, Bool, Ptr]),
            Entry::Lock => ("gr_lock", Void, &[Ptr]),
            Entry::Unlock => ("gr_unlock", Void, &[Ptr]),
            Entry::Enter => ("gr_enter", Bool, &[]),
            Entry::Leave => ("gr_leave", Void, &[Bool]),
            Entry::Final => ("gr_final", Bool, &[Bool]),
            Entry::FinalEnd => ("gr_final_end", Void, &[Bool]),
            Entry::Scratch => ("gr_scratch", Ptr, &[I64]),
            Entry::ScratchEnd => ("gr_scratch_end", Void, &[Ptr, I64]),
            Entry::Turns => ("gr_turns", Void, &[Ptr, I64, Ptr, Ptr]),
            Entry::TurnMeet => ("gr_turn_meet", Void, &[Bool]),
        }
    }

    /// Returns the entry point's function, declared on first use.
    pub(crate) fn declare(self, unit: &mut Unit) -> FuncId {
        let (name, result, params) = self.signature();
        let result = ty(unit, result);
        let params = params.iter().map(|p| ty(unit, *p)).collect();
        let ty = unit.types.func(result, params);
        let flag = |name: &str| Attr {
            name: name.to_string(),
            value: AttrValue::Flag,
        };
        let mut attrs = AttrSet {
            function: vec![flag("nounwind")],
            ..AttrSet::default()
        };
        if matches!(self, Entry::Hungry | Entry::Single | Entry::Enter) {
            // C's `bool`: the upper bits of the byte are zero.
            attrs.result.push(flag("zeroext"));
        }
        if self == Entry::Scratch {
            attrs.result.push(flag("noalias"));
        }
        let truths = self
            .signature()
            .2
            .iter()
            .position(|ty| matches!(ty, Ty::Bool));
        if let Some(at) = truths {
            attrs.params = vec![Vec::new(); at];
            attrs.params.push(vec![flag("zeroext")]);
        }
        unit.declare(name, ty, attrs)
    }
}

fn ty(unit: &mut Unit, ty: Ty) -> TypeId {
    match ty {
        Ty::Void => unit.types.void(),
        Ty::Bool => unit.types.int(1),
        Ty::I32 => unit.types.int(32),
        Ty::I64 => unit.types.int(64),
        Ty::Ptr => unit.types.ptr(),
    }
}

/// Returns the address of a runtime byte: non-zero if every loop must fork, regardless of size, or (`calls`)
/// every loop with a call to an unknown callee. The runtime sets the byte before the program starts, hence the
/// global is constant.
pub(crate) fn always_fork_address(b: &mut Builder<'_>, calls: bool) -> Value {
    let byte = b.unit.types.int(8);
    let name = match calls {
        true => "gr_always_fork_calls",
        false => "gr_always_fork",
    };
    let global = runtime_global(b.unit, name, byte, Linkage::External, false);
    b.unit.globals[global].constant = true;
    global_address(b, global)
}

/// Returns the address of the runtime's count of awake workers that are idle or became busy a moment ago. The
/// count may change at any time.
pub(crate) fn idle_workers_address(b: &mut Builder<'_>) -> Value {
    let word = b.unit.types.int(32);
    let global = runtime_global(b.unit, "gr_awake", word, Linkage::External, false);
    global_address(b, global)
}

/// Returns the address of the lock for all critical regions called `name`. The lock is clang's variable if the
/// program has one, because code left to libomp takes clang's lock.
pub(crate) fn lock_address(b: &mut Builder<'_>, name: &str) -> Value {
    let clang = format!(".gomp_critical_user_{name}.var");
    let known = [&clang, name].map(|name| b.unit.symbol(name));
    let global = known.into_iter().find_map(|symbol| match symbol {
        Some(Symbol::Global(id)) => Some(id),
        _ => None,
    });
    let global = global.unwrap_or_else(|| {
        let word = b.unit.types.int(32);
        let words = b.unit.types.array(word, 8);
        runtime_global(b.unit, &clang, words, Linkage::LinkOnceOdr, true)
    });
    global_address(b, global)
}

fn global_address(b: &mut Builder<'_>, global: GlobalId) -> Value {
    let ptr = b.unit.types.ptr();
    let id = b
        .unit
        .consts
        .intern(ptr, ConstKind::Global { global, offset: 0 });
    b.constant(id)
}

fn runtime_global(
    unit: &mut Unit,
    name: &str,
    ty: TypeId,
    linkage: Linkage,
    defined: bool,
) -> GlobalId {
    if let Some(Symbol::Global(id)) = unit.symbol(name) {
        return id;
    }
    let size_bytes = unit.layout.size_bytes(unit, ty);
    let init = Initializer {
        bytes: vec![0; usize::try_from(size_bytes).unwrap_or(0)],
        relocations: Vec::new(),
    };
    unit.add_global(Global {
        name: name.to_string(),
        ty,
        constant: false,
        thread_local: false,
        defined,
        linkage,
        align_bytes: 4,
        init: defined.then_some(init),
        unparsed_symbols: Vec::new(),
        room_bytes: 0,
        derived_from: None,
    })
}
