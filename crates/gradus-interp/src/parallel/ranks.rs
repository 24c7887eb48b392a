//! Parallel ops with serial semantics. Ranks are strands; each rank runs to the next barrier before the next
//! rank starts, in rank order or in a random order.

use crate::bytecode::code::{Instr, ParForInfo, Reg};
use crate::memory::ObjectKind;
use crate::state::machine::Machine;
use crate::state::rank_groups::{Group, Rank};
use crate::state::strand::{At, Flow, Frame, Strand};
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::{Address, Value};
use gradus_ir::Schedule;
use std::collections::HashMap;
use std::rc::Rc;

const MAX_RANKS: u64 = 1 << 20;

impl Machine<'_> {
    pub(crate) fn parallel_instr(&mut self, at: &At, instr: &Instr) -> Eval<Flow> {
        match instr {
            Instr::ParStart(info) => self.par_start(at, info),
            Instr::ParIndex { info, exit } => self.par_index(at, info, *exit),
            Instr::Spmd {
                team,
                extents,
                params,
                end,
                ..
            } => self.spmd(at, *team, extents, params, *end),
            Instr::RankEnd => {
                self.free_stack(0);
                self.hand_over_trace();
                self.strand = Strand::default();
                self.suspend_rank(Rank::Ended)
            }
            Instr::Barrier { grid } => self.barrier(*grid),
            Instr::ShareStart {
                schedule,
                count,
                chunk,
                state,
            } => self.share_start(at, *schedule, *count, *chunk, *state),
            Instr::ShareTest { state, index, exit } => {
                let (i, end) = (self.number(at, *state), self.number(at, *state + 1));
                if i >= end {
                    return Ok(Flow::To(*exit));
                }
                self.set(at, *index, Value::Bits(i))
            }
            Instr::ShareNext { state, head } => {
                let next = self.number(at, *state) + 1;
                let (chunk, skip) = (self.number(at, *state + 2), self.number(at, *state + 3));
                let skip = if next.is_multiple_of(chunk) { skip } else { 0 };
                let next = next.saturating_add(skip);
                self.set(at, *state, Value::Bits(next))?;
                Ok(Flow::To(*head))
            }
            Instr::Single { skip } => match self.is_first_at_single() {
                true => Ok(Flow::Next),
                false => Ok(Flow::To(*skip)),
            },
            Instr::Publish(regs) => {
                let values = regs.iter().map(|r| self.get(at, *r).clone()).collect();
                let number = self.strand.singles;
                if let Some(group) = self.groups.last_mut() {
                    group.published.insert(number, values);
                }
                Ok(Flow::Next)
            }
            Instr::Receive(regs) => {
                let group = self.groups.last();
                let values = group.and_then(|g| g.published.get(&self.strand.singles));
                let values = values.cloned().unwrap_or_default();
                for (&reg, value) in std::iter::zip(regs, values) {
                    self.set(at, reg, value)?;
                }
                Ok(Flow::Next)
            }
            _ => fault(
                TrapKind::Unsupported,
                "an instruction outside of this group",
            ),
        }
    }

    /// Returns whether the rank is the first of the group at the current `single`. All ranks reach equal
    /// `single` ops in equal order; a counter per rank therefore identifies the op.
    fn is_first_at_single(&mut self) -> bool {
        self.strand.singles += 1;
        let number = self.strand.singles;
        match self
            .groups
            .last_mut()
            .filter(|_| self.strand.rank.is_some())
        {
            Some(group) if group.singles >= number => false,
            Some(group) => {
                group.singles = number;
                true
            }
            None => true,
        }
    }

    fn number(&self, at: &At, reg: Reg) -> u64 {
        self.get(at, reg).bits().unwrap_or(0)
    }

    fn product(&self, at: &At, extents: &[Reg]) -> Eval<u64> {
        let mut total = 1u64;
        for &extent in extents {
            let extent = self.defined(at, extent, "an extent")?;
            let Some(product) = total.checked_mul(extent) else {
                return fault(TrapKind::Limit, "too many loop iterations");
            };
            total = product;
        }
        Ok(total)
    }

    // ---- par.for ---------------------------------------------------------------------------

    fn par_start(&mut self, at: &At, info: &ParForInfo) -> Eval<Flow> {
        let total = self.product(at, &info.extents)?;
        if let Some(races) = &mut self.races {
            races.fork(self.strand.frames.len());
        }
        self.set(at, info.counter, Value::Bits(0))?;
        self.set(at, info.total, Value::Bits(total))
    }

    /// Sets the indices of the next iteration; the last index varies fastest.
    fn par_index(&mut self, at: &At, info: &ParForInfo, exit: u32) -> Eval<Flow> {
        let (counter, total) = (self.number(at, info.counter), self.number(at, info.total));
        if let Some(races) = &mut self.races {
            match counter >= total {
                true => races.join(),
                false => races.switch_strand(counter),
            }
        }
        if counter >= total {
            return Ok(Flow::To(exit));
        }
        self.set(at, info.counter, Value::Bits(counter + 1))?;
        let mut rest = match self.options.random_order {
            None => counter,
            Some(seed) => permuted_index(counter, total, seed),
        };
        for (&extent, &index) in std::iter::zip(&info.extents, &info.indices).rev() {
            let extent = self.number(at, extent).max(1);
            self.set(at, index, Value::Bits(rest % extent))?;
            rest /= extent;
        }
        Ok(Flow::Next)
    }

    // ---- spmd ------------------------------------------------------------------------------

    fn spmd(
        &mut self,
        at: &At,
        team: bool,
        extents: &[Reg],
        params: &[Reg],
        end: u32,
    ) -> Eval<Flow> {
        let asked = self.product(at, extents)?;
        let open = team && asked == 0 && extents.len() == 1;
        let total = if open {
            self.options.team.max(1)
        } else {
            asked
        };
        if total > MAX_RANKS {
            return fault(TrapKind::Limit, "the team has too many ranks");
        }
        let Some(frame) = self.strand.frames.last().cloned() else {
            return fault(TrapKind::BadCall, "the call stack is empty");
        };
        let window = at.base..at.base + at.code.registers as usize;
        let sizes: Vec<u64> = match open {
            true => vec![total],
            false => extents.iter().map(|e| self.number(at, *e)).collect(),
        };
        let ranks = (0..total).map(|rank| {
            let mut regs = self.strand.regs[window.clone()].to_vec();
            let mut rest = rank;
            for (i, size) in sizes.iter().enumerate() {
                regs[params[i] as usize] = Value::Bits(rest % size);
                regs[params[sizes.len() + i] as usize] = Value::Bits(*size);
                rest /= size;
            }
            Rank::Ready(Box::new(Strand {
                regs,
                frames: vec![Frame {
                    code: Rc::clone(&frame.code),
                    pc: self.pc + 1,
                    base: 0,
                    objects: 0,
                    trace: frame.trace.clone(),
                }],
                objects: Vec::new(),
                rank: Some((rank, total)),
                singles: 0,
                pending: None,
            }))
        });
        let ranks: Vec<Rank> = ranks.collect();
        if let Some(frame) = self.strand.frames.last_mut() {
            frame.pc = end;
        }
        let order = self.order(ranks.len());
        if let Some(races) = &mut self.races {
            // The enclosing strand's calls cannot end before the ranks have ended.
            races.fork(0);
        }
        self.groups.push(Group {
            parent: std::mem::take(&mut self.strand),
            ranks,
            order,
            next: 0,
            current: 0,
            singles: 0,
            published: HashMap::new(),
            shared: HashMap::new(),
        });
        self.next_rank()
    }

    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if self.options.random_order.is_some() {
            for i in (1..count).rev() {
                // Xorshift (Marsaglia 2003).
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                order.swap(i, (self.random % (i as u64 + 1)) as usize);
            }
        }
        order
    }

    /// Moves the position between control edges from an ended rank to the strand that continues.
    fn hand_over_trace(&mut self) {
        let trace = self.strand.frames.last_mut().and_then(|f| f.trace.take());
        let parent = self.groups.last_mut().map(|group| &mut group.parent);
        if let (Some(trace), Some(frame)) = (trace, parent.and_then(|p| p.frames.last_mut())) {
            frame.trace = Some(trace);
        }
    }

    /// Stores the state of the running rank and switches to the next rank.
    fn suspend_rank(&mut self, state: Rank) -> Eval<Flow> {
        if let Some(group) = self.groups.last_mut() {
            let current = group.current;
            group.ranks[current] = state;
        }
        self.next_rank()
    }

    /// Continues with the next rank of the interval, with the next interval, or after the `spmd`.
    fn next_rank(&mut self) -> Eval<Flow> {
        loop {
            let Some(group) = self.groups.last_mut() else {
                return fault(TrapKind::BadCall, "no `spmd` is running");
            };
            while group.next < group.order.len() {
                let rank = group.order[group.next];
                group.next += 1;
                if let Rank::Ready(strand) =
                    std::mem::replace(&mut group.ranks[rank], Rank::Running)
                {
                    group.current = rank;
                    self.strand = *strand;
                    if let Some(races) = &mut self.races {
                        races.switch_strand(rank as u64);
                    }
                    return Ok(Flow::Switch);
                }
                group.ranks[rank] = Rank::Ended;
            }
            let mut waiting = false;
            for rank in &mut group.ranks {
                *rank = match std::mem::replace(rank, Rank::Ended) {
                    Rank::Waiting(strand) => {
                        waiting = true;
                        Rank::Ready(strand)
                    }
                    other => other,
                };
            }
            if waiting {
                let count = group.ranks.len();
                let order = self.order(count);
                if let Some(group) = self.groups.last_mut() {
                    group.order = order;
                    group.next = 0;
                }
                if let Some(races) = &mut self.races {
                    races.synchronize();
                }
                continue;
            }
            if let Some(races) = &mut self.races {
                races.join();
            }
            if let Some(group) = self.groups.pop() {
                self.strand = group.parent;
                for object in group.shared.into_values() {
                    self.memory.end_lifetime(object);
                }
            }
            return Ok(Flow::Switch);
        }
    }

    /// Waits at a barrier for the other ranks; ended ranks do not count.
    fn barrier(&mut self, grid: bool) -> Eval<Flow> {
        if grid && self.groups.len() > 1 {
            return fault(TrapKind::Unsupported, "a grid barrier inside a block");
        }
        if self.strand.rank.is_none() {
            return Ok(Flow::Next);
        }
        let pc = self.pc;
        if let Some(frame) = self.strand.frames.last_mut() {
            frame.pc = pc + 1;
        }
        let strand = std::mem::take(&mut self.strand);
        self.suspend_rank(Rank::Waiting(Box::new(strand)))
    }

    /// Returns the object shared by all ranks; outside an `spmd` a stack object of the function.
    pub(crate) fn shared_object(&mut self, size: u64, align: u64) -> Eval<Address> {
        let Some(frame) = self
            .strand
            .frames
            .last()
            .filter(|_| self.strand.rank.is_some())
        else {
            return self.stack_object(size, align);
        };
        let key = (frame.code.func, self.pc);
        let Some(group) = self.groups.last_mut() else {
            return self.stack_object(size, align);
        };
        if let Some(&address) = group.shared.get(&key) {
            return Ok(address);
        }
        let address = self
            .memory
            .allocate(size, align, ObjectKind::Stack, false)?;
        group.shared.insert(key, address);
        Ok(address)
    }

    // ---- share.for -------------------------------------------------------------------------

    /// Sets the rank's first and last iteration, the chunk size, and the distance between the rank's chunks.
    fn share_start(
        &mut self,
        at: &At,
        schedule: Schedule,
        count: Reg,
        chunk: Option<Reg>,
        state: Reg,
    ) -> Eval<Flow> {
        let count = self.defined(at, count, "a trip count")?;
        let (rank, ranks) = self.strand.rank.unwrap_or((0, 1));
        let chunk = match (chunk, schedule) {
            (Some(chunk), _) => self.defined(at, chunk, "a chunk size")?.max(1),
            (None, Schedule::Static) => 0,
            (None, Schedule::Dynamic | Schedule::Guided) => 1,
        };
        let words = if chunk == 0 {
            let part = count.div_ceil(ranks).max(1);
            let start = rank.saturating_mul(part).min(count);
            [start, start.saturating_add(part).min(count), u64::MAX, 0]
        } else {
            let between = chunk.saturating_mul(ranks - 1);
            [rank.saturating_mul(chunk), count, chunk, between]
        };
        for (i, word) in words.into_iter().enumerate() {
            self.set(at, state + i as Reg, Value::Bits(word))?;
        }
        Ok(Flow::Next)
    }
}

/// Returns a permuted index in `0..total`: an affine map with a factor coprime to `total`.
fn permuted_index(counter: u64, total: u64, seed: u64) -> u64 {
    let mut factor = (seed | 1) % total.max(1);
    while gcd(factor, total) != 1 {
        factor += 1;
    }
    let product = u128::from(counter) * u128::from(factor) + u128::from(seed);
    (product % u128::from(total)) as u64
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
