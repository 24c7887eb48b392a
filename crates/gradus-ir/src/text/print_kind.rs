//! The printer of an op's data besides operands: the keywords between flags and operands.

use super::lex::quoted;
use super::print_const::TypePrinter;
use crate::ops::ops_without_data;
use crate::{
    Access, AllocaInfo, AllocaStorage, Atomicity, LandingPad, OpKind, ReduceOp, TypeId, Unit,
};

/// The context that an op's data refer to.
pub(super) struct KindPrinter<'a> {
    pub unit: &'a Unit,
    pub types: &'a TypePrinter<'a>,
    /// The type of the memory access; the type's natural alignment is omitted.
    pub accessed: Option<TypeId>,
    /// The number of operands; determines the dimensions of parallel ops.
    pub operands: usize,
}

impl KindPrinter<'_> {
    /// Returns the keywords between flags and operands. Calls have a separate printer.
    // table
    pub fn keywords(&self, kind: &OpKind) -> Vec<String> {
        use OpKind::*;
        match kind {
            ICmp(p) => vec![p.name().into()],
            FCmp(p) => vec![p.name().into()],
            Shuffle(mask) => vec![list(mask)],
            ExtractValue(path) | InsertValue(path) => vec![list(path)],
            Alloca(info) => self.alloca(info),
            Load(access) | Store(access) => self.access(access),
            Addr { source } => vec![format!("{},", self.types.text(*source))],
            AtomicRmw(op, access) => {
                let mut words = vec![op.name().into()];
                words.extend(self.access(access));
                words
            }
            CmpXchg {
                access,
                failure,
                weak,
            } => {
                let mut words: Vec<String> = weak.then(|| "weak".into()).into_iter().collect();
                words.extend(self.access(access));
                words.push(format!("failure {}", failure.name()));
                words
            }
            Fence { order, sync_scope } => {
                let mut words = vec![order.name().into()];
                words.extend(scope(*sync_scope));
                words
            }
            Loop { trip_max } | For { trip_max } => {
                trip_max.iter().map(|n| format!("trip_max {n}")).collect()
            }
            LandingPad(pad) => self.landing_pad(pad),
            ParFor {
                dims,
                reductions,
                grain,
            } => {
                let mut words = par_for(*dims, reductions, self.operands);
                words.extend(grain.map(|n| format!("grain {n}")));
                words
            }
            Spawn {
                has_condition: when,
                has_final: serial,
            } => word_list(&[(*when, "when"), (*serial, "serial")]),
            Spmd { kind, dims } => {
                let mut words = vec![kind.name().into()];
                if *dims as usize != self.operands {
                    words.push(format!("dims {dims}"));
                }
                words
            }
            Barrier(scope) => vec![scope.name().into()],
            ShareFor {
                schedule,
                chunked,
                nowait,
            } => {
                let name = schedule.name();
                word_list(&[(true, name), (*chunked, "chunked"), (*nowait, "nowait")])
            }
            Single { nowait, copy } => word_list(&[(*nowait, "nowait"), (*copy, "copy")]),
            Critical(name) => vec![quoted(name)],
            Foreign(n) => vec![n.to_string()],
            ops_without_data!() => Vec::new(),
        }
    }

    fn alloca(&self, info: &AllocaInfo) -> Vec<String> {
        let mut words = Vec::new();
        if u64::from(info.align_bytes) != self.unit.layout.align_bytes(self.unit, info.ty) {
            words.push(format!("align {}", info.align_bytes));
        }
        words.extend(match info.storage {
            AllocaStorage::Frame => None,
            AllocaStorage::Private => Some("private".into()),
            AllocaStorage::Shared => Some("shared".into()),
        });
        words.extend(info.inalloca.then(|| "inalloca".into()));
        words.push(format!("{},", self.types.text(info.ty)));
        words
    }

    fn access(&self, access: &Access) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(access.volatile.then(|| "volatile".into()));
        if access.order != Atomicity::NotAtomic {
            words.push(access.order.name().into());
        }
        words.extend(scope(access.sync_scope));
        let natural = self
            .accessed
            .map(|ty| self.unit.layout.align_bytes(self.unit, ty));
        if natural != Some(u64::from(access.align_bytes)) {
            words.push(format!("align {}", access.align_bytes));
        }
        words
    }

    fn landing_pad(&self, pad: &LandingPad) -> Vec<String> {
        let mut words: Vec<String> = pad.cleanup.then(|| "cleanup".into()).into_iter().collect();
        for (filter, id) in &pad.clauses {
            let mut text = String::from(if *filter { "filter " } else { "catch " });
            self.types.write_const(&mut text, *id);
            words.push(text);
        }
        words
    }
}

/// Returns the type that an op accesses in memory, from operand and result types.
pub(super) fn accessed(kind: &OpKind, operands: &[TypeId], results: &[TypeId]) -> Option<TypeId> {
    match kind {
        OpKind::Load(_) => results.first().copied(),
        OpKind::Store(_) => operands.first().copied(),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => operands.get(1).copied(),
        _ => None,
    }
}

/// Returns the access properties of a memory op.
pub(super) fn access_mut(kind: &mut OpKind) -> Option<&mut Access> {
    match kind {
        OpKind::Load(access)
        | OpKind::Store(access)
        | OpKind::AtomicRmw(_, access)
        | OpKind::CmpXchg { access, .. } => Some(access),
        _ => None,
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("[{}]", items.join(", "))
}

/// Returns the text of a synchronisation scope other than the whole system.
fn scope(sync_scope: u32) -> Option<String> {
    (sync_scope != 1).then(|| format!("syncscope {sync_scope}"))
}

/// Returns the keywords with a true flag.
fn word_list(words: &[(bool, &str)]) -> Vec<String> {
    let said = words.iter().filter(|(said, _)| *said);
    said.map(|(_, word)| (*word).into()).collect()
}

fn par_for(dims: u32, reductions: &[ReduceOp], operands: usize) -> Vec<String> {
    let mut words = Vec::new();
    if dims as usize + reductions.len() != operands {
        words.push(format!("dims {dims}"));
    }
    if !reductions.is_empty() {
        let names: Vec<&str> = reductions.iter().map(|r| r.name()).collect();
        words.push(format!("reduce({})", names.join(", ")));
    }
    words
}
