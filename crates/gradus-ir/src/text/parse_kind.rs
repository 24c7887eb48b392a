//! The parser of an op's data besides operands; inverse of `print_kind`.

use super::TextError;
use super::parse::Parser;
use super::print_kind::access_mut;
use crate::ops::ops_without_data;
use crate::{
    AllocaInfo, AllocaStorage, Atomicity, BarrierScope, FloatPredicate, IntPredicate, LandingPad,
    OpKind, ReduceOp, RmwOp, Schedule, SpmdKind,
};

impl Parser {
    /// Sets the data of `kind` from the tokens between flags and operands. The body parser handles calls. An
    /// omitted alignment is represented as 0.
    // table
    pub(super) fn kind_data(&mut self, kind: &mut OpKind) -> Result<(), TextError> {
        use OpKind::*;
        match kind {
            ICmp(p) => *p = self.keyword("an integer predicate", IntPredicate::from_name)?,
            FCmp(p) => {
                *p = self.keyword("a floating-point predicate", FloatPredicate::from_name)?
            }
            Shuffle(mask) => *mask = self.list("[", "]", Self::number)?.into(),
            ExtractValue(path) | InsertValue(path) => {
                *path = self.list("[", "]", Self::number)?.into();
            }
            Alloca(info) => *info = self.alloca_info()?,
            Load(_) | Store(_) => self.access(kind)?,
            Addr { source } => {
                *source = self.ty()?;
                self.expect(",")?;
            }
            AtomicRmw(op, _) => {
                *op = self.keyword("a read-modify-write operation", RmwOp::from_name)?;
                self.access(kind)?;
            }
            CmpXchg { weak, .. } => {
                *weak = self.eat_word("weak");
                self.access(kind)?;
                self.failure_order(kind)?;
            }
            Fence { order, sync_scope } => {
                *order = self.keyword("a memory ordering", Atomicity::from_name)?;
                if self.eat_word("syncscope") {
                    *sync_scope = self.number()?;
                }
            }
            Loop { trip_max } | For { trip_max } => {
                if self.eat_word("trip_max") {
                    *trip_max = Some(self.number()?);
                }
            }
            LandingPad(pad) => **pad = self.landing_pad()?,
            ParFor {
                dims,
                reductions,
                grain,
            } => {
                if self.eat_word("dims") {
                    *dims = self.number()?;
                }
                if self.eat_word("reduce") {
                    *reductions = self.list("(", ")", Self::reduction)?.into();
                }
                if self.eat_word("grain") {
                    *grain = Some(self.number()?);
                }
            }
            Spawn {
                has_condition: when,
                has_final: serial,
            } => {
                *when = self.eat_word("when");
                *serial = self.eat_word("serial");
            }
            Spmd { kind, dims } => {
                *kind = self.keyword("an `spmd` kind", SpmdKind::from_name)?;
                if self.eat_word("dims") {
                    *dims = self.number()?;
                }
            }
            Barrier(scope) => *scope = self.keyword("a barrier scope", BarrierScope::from_name)?,
            ShareFor {
                schedule,
                chunked,
                nowait,
            } => {
                *schedule = self.keyword("a schedule", Schedule::from_name)?;
                *chunked = self.eat_word("chunked");
                *nowait = self.eat_word("nowait");
            }
            Single { nowait, copy } => {
                *nowait = self.eat_word("nowait");
                *copy = self.eat_word("copy");
            }
            Critical(name) => *name = self.text()?.into(),
            Foreign(n) => *n = self.number()?,
            ops_without_data!() => {}
        }
        Ok(())
    }

    fn keyword<T>(&mut self, what: &str, find: fn(&str) -> Option<T>) -> Result<T, TextError> {
        match self.word().and_then(find) {
            Some(item) => {
                self.at += 1;
                Ok(item)
            }
            None => self.error(format!("expected {what}")),
        }
    }

    /// Parses the keyword of a reduction operator.
    pub(super) fn reduction(&mut self) -> Result<ReduceOp, TextError> {
        self.keyword("a reduction operator", ReduceOp::from_name)
    }

    fn alloca_info(&mut self) -> Result<AllocaInfo, TextError> {
        let mut align = None;
        let mut place = AllocaStorage::Frame;
        let mut inalloca = false;
        loop {
            if self.eat_word("align") {
                align = Some(self.number()?);
            } else if self.eat_word("private") {
                place = AllocaStorage::Private;
            } else if self.eat_word("shared") {
                place = AllocaStorage::Shared;
            } else if self.eat_word("inalloca") {
                inalloca = true;
            } else {
                break;
            }
        }
        let ty = self.ty()?;
        self.expect(",")?;
        let natural = self.unit.layout.align_bytes(&self.unit, ty) as u32;
        Ok(AllocaInfo {
            ty,
            align_bytes: align.unwrap_or(natural),
            storage: place,
            inalloca,
        })
    }

    fn access(&mut self, kind: &mut OpKind) -> Result<(), TextError> {
        let Some(access) = access_mut(kind) else {
            // Not an error: the op accesses no memory.
            return Ok(());
        };
        loop {
            if self.eat_word("volatile") {
                access.volatile = true;
            } else if self.eat_word("syncscope") {
                access.sync_scope = self.number()?;
            } else if self.eat_word("align") {
                access.align_bytes = self.number()?;
                if access.align_bytes == 0 {
                    return self.error("an alignment must be at least 1");
                }
            } else if let Some(order) = self.word().and_then(Atomicity::from_name) {
                self.at += 1;
                access.order = order;
            } else {
                // Not an error: no further keyword describes the access.
                return Ok(());
            }
        }
    }

    fn failure_order(&mut self, kind: &mut OpKind) -> Result<(), TextError> {
        if !self.eat_word("failure") {
            return self.error("expected `failure` and a memory ordering");
        }
        let order = self.keyword("a memory ordering", Atomicity::from_name)?;
        if let OpKind::CmpXchg { failure, .. } = kind {
            *failure = order;
        }
        Ok(())
    }

    fn landing_pad(&mut self) -> Result<LandingPad, TextError> {
        let cleanup = self.eat_word("cleanup");
        let mut clauses = Vec::new();
        loop {
            let filter = self.word() == Some("filter");
            if !filter && self.word() != Some("catch") {
                return Ok(LandingPad { cleanup, clauses });
            }
            self.at += 1;
            clauses.push((filter, self.constant()?));
        }
    }
}
