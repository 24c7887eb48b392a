//! Idioms of CUDA kernels with dedicated passes: warps in lockstep, shuffles, every n-th thread, searches,
//! row-major indices, clamped neighbours, atomic operations of all kinds.
//!
//! Each idiom uses separate memory, independent of the modes of other arrays.

use super::{ATOMIC_CELLS, KEY_CELLS, Writer};

/// The commutative atomic operations, one per cell of `%ups`.
const COMMUTATIVE_ATOMICS: &[&str] = &["max", "min", "umax", "umin", "and", "or", "xor", "sub"];
const ORDERS: &[&str] = &["monotonic", "monotonic", "acq_rel", "seq_cst"];

impl Writer {
    // ---- uniform statements of all remaining threads -----------------------------------------

    /// Emits communication of a warp's threads through volatile memory in lockstep. Warp barriers, seen by
    /// the interpreter only, encode the lockstep.
    pub(super) fn lockstep(&mut self) {
        self.met(true, "warps in step");
        let value = self.value();
        self.lockstep_store(&value);
        match self.random.below(3) {
            0 => self.lockstep_in_branch(),
            1 => self.lockstep_in_loop(),
            _ => {
                for _ in 0..1 + self.random.below(3) {
                    let far = (1 + self.random.below(16)).to_string();
                    self.step(&far);
                }
            }
        }
        let result = self.define("load volatile %ownsteps -> i64");
        self.own.push(result);
    }

    fn lockstep_store(&mut self, value: &str) {
        self.line("barrier warp");
        self.line(&format!("store volatile {value}, %ownsteps"));
        self.line("barrier warp");
    }

    /// Returns the element of the thread `far` lanes further on, or the thread's own element if none
    /// exists.
    fn other_lane_element(&mut self, array: &str, far: &str, how: &str) -> String {
        let lane = self.define("and %t, 31");
        let moved = self.define(&format!("{how} {lane}, {far}"));
        let moved = self.define(&format!("and {moved}, 31"));
        let first = self.define(&format!("sub %t, {lane}"));
        let place = self.define(&format!("add {first}, {moved}"));
        let size = self.size.clone();
        let there = self.define(&format!("icmp ult {place}, {size}"));
        let place = self.define(&format!("select {there}, {place}, %t"));
        self.define(&format!("addr i64, %{array}, {place}"))
    }

    fn step(&mut self, far: &str) {
        let at = self.other_lane_element("steps", far, "add");
        let other = self.define(&format!("load volatile {at} -> i64"));
        let own = self.define("load volatile %ownsteps -> i64");
        let sum = self.combined(&own, &other);
        self.lockstep_store(&sum);
    }

    /// Whole warps enter the branch or skip it. For the interpreter, other warps execute equally many
    /// barriers.
    fn lockstep_in_branch(&mut self) {
        self.met(true, "some warps in step");
        let steps = 1 + self.random.below(2);
        let bit = self.define("and %t, 32");
        let predicate = *self.random.pick(&["eq", "ne"]);
        let inside = self.define(&format!("icmp {predicate} {bit}, 0"));
        self.line(&format!("if {inside} {{"));
        self.region(|w| {
            for _ in 0..steps {
                let far = (1 + w.random.below(16)).to_string();
                w.step(&far);
            }
            w.line("yield");
        });
        self.line("} else {");
        self.region(|w| {
            for _ in 0..2 * steps {
                w.line("barrier warp");
            }
            w.line("yield");
        });
        self.line("}");
    }

    fn lockstep_in_loop(&mut self) {
        self.met(true, "loop in step");
        let start = *self.random.pick(&[16, 8, 4]);
        let far = self.name();
        self.line(&format!("loop iter({far} = {start}) {{"));
        self.region(|w| {
            w.step(&far);
            let half = w.define(&format!("lshr {far}, 1"));
            let again = w.define(&format!("icmp ne {half}, 0"));
            w.line(&format!("repeat {again}, {half}"));
        });
        self.line("}");
    }

    /// Emits a shuffle: a thread stores a number and loads another lane's.
    pub(super) fn shuffle(&mut self) {
        self.met(true, "lanes speak");
        let value = self.value();
        self.line(&format!("store {value}, %ownlanes"));
        self.line("barrier block");
        let far = match self.random.below(2) {
            0 => self.value(),
            _ => (1 + self.random.below(16)).to_string(),
        };
        let how = *self.random.pick(&["add", "sub", "xor"]);
        let at = self.other_lane_element("lanes", &far, how);
        let heard = self.define(&format!("load {at} -> i64"));
        self.own.push(heard);
        self.line("barrier block");
    }

    /// Emits code for threads whose number is a multiple only.
    pub(super) fn sparse_threads(&mut self) {
        self.line("barrier block");
        let rank = match self.random.below(2) {
            0 => "%t".to_string(),
            _ => format!("%t{}", self.random.below(self.dims as u32)),
        };
        let rest = match self.random.below(3) {
            0 => {
                self.met(true, "remainder of threads");
                let value = self.uniform_value();
                let value = self.named(value);
                let low = self.define(&format!("and {value}, 15"));
                let of = self.define(&format!("add {low}, 1"));
                let kind = *self.random.pick(&["urem", "srem"]);
                self.define(&format!("{kind} {rank}, {of}"))
            }
            _ => {
                self.met(true, "every so many-th thread");
                let mask = match self.random.below(4) {
                    0 => {
                        let value = self.uniform_value();
                        let value = self.named(value);
                        self.define(&format!("and {value}, 31"))
                    }
                    _ => {
                        let above = *self.random.pick(&[1, 5, 13, 29]);
                        self.define(&format!("add %m, {above}"))
                    }
                };
                let plus = self.uniform_value();
                let place = match self.random.below(2) {
                    0 => rank,
                    _ => self.define(&format!("add {rank}, {plus}")),
                };
                self.define(&format!("and {place}, {mask}"))
            }
        };
        let chosen = self.define(&format!("icmp eq {rest}, 0"));
        self.line(&format!("if {chosen} {{"));
        self.region(|w| {
            for _ in 0..1 + w.random.below(3) {
                w.thread_statement(1);
            }
            w.own_cell_statement();
            w.line("yield");
        });
        self.line("} else {");
        self.line("  yield");
        self.line("}");
        self.line("barrier block");
    }

    // ---- statements of a thread ------------------------------------------------------------

    /// Emits a search for the first key not below a number; such a key exists.
    pub(super) fn search(&mut self) {
        self.met(true, "search");
        let ty = *self.random.pick(&["i64", "i32"]);
        let first = *self.random.pick(&[0, 1, 16, 17, 90]);
        // A sequential search reads no key beyond the last, for any limit.
        let most = 3 * KEY_CELLS - 2;
        let wanted = match self.random.below(3) {
            0 => (most - self.random.below(14)).to_string(),
            _ => {
                let wanted = self.value();
                self.index(wanted, &most.to_string())
            }
        };
        let limit = match self.random.below(3) {
            0 => {
                let limit = self.uniform_value();
                let limit = self.index(limit, &(KEY_CELLS + KEY_CELLS / 2).to_string());
                match ty {
                    "i32" => self.define(&format!("trunc {limit} -> i32")),
                    _ => limit,
                }
            }
            _ => format!("{ty} {}", KEY_CELLS + self.random.below(KEY_CELLS / 2)),
        };
        let (x, found, go, next, place) = (
            self.name(),
            self.name(),
            self.name(),
            self.name(),
            self.name(),
        );
        self.line(&format!(
            "{found} = loop iter({x} = {ty} {first}) -> {ty} {{"
        ));
        self.region(|w| {
            let more = w.define(&format!("icmp slt {x}, {limit}"));
            w.line(&format!(
                "{go}, {next}, {place} = if {more} -> i1, {ty}, {ty} {{"
            ));
            w.region(|w| {
                let at = match ty {
                    "i32" => w.define(&format!("zext nneg {x} -> i64")),
                    _ => x.clone(),
                };
                let at = w.define(&format!("addr i64, %key, {at}"));
                let key = w.define(&format!("load {at} -> i64"));
                let less = w.define(&format!("icmp slt {key}, {wanted}"));
                let by = w.define(&format!("select {less}, {ty} 1, {ty} 0"));
                let after = w.define(&format!("add {x}, {by}"));
                w.line(&format!("yield {less}, {after}, {x}"));
            });
            w.line("} else {");
            w.line(&format!("  yield false, {x}, {ty} -1"));
            w.line("}");
            w.line(&format!("repeat {go}, {next}, {place}"));
        });
        self.line("}");
        let found = match ty {
            "i32" => self.define(&format!("sext {found} -> i64")),
            _ => found,
        };
        self.own.push(found);
    }

    /// Emits a read at a row-major index computed in 32 bits, and a number that may wrap.
    pub(super) fn row_major_index(&mut self) {
        self.met(true, "short row");
        let row = match self.dims {
            1 => "%b".to_string(),
            _ => "%t1".to_string(),
        };
        let [column, row, long] =
            ["%t0", &row, "%n0"].map(|v| self.define(&format!("trunc {v} -> i32")));
        let before = self.define(&format!("mul nsw {row}, {long}"));
        let low = self.uniform_value();
        let low = self.named(low);
        let low = self.define(&format!("and {low}, 7"));
        let low = self.define(&format!("trunc {low} -> i32"));
        let first = self.define(&format!("add nsw {before}, {low}"));
        let place = self.define(&format!("add nsw {first}, {column}"));
        let place = self.define(&format!("sext {place} -> i64"));
        let at = self.define(&format!("addr i64, %key, {place}"));
        let read = self.define(&format!("load {at} -> i64"));
        let high = self.define(&format!("or {low}, i32 2147483640"));
        let wraps = self.define(&format!("add {high}, {column}"));
        let wraps = self.define(&format!("sext {wraps} -> i64"));
        self.own.extend([read, wraps]);
    }

    /// Emits a read of a neighbour's cell, clamped to a limit.
    pub(super) fn clamped(&mut self, array: usize) {
        self.met(true, "clamped place");
        let (far, size) = (1 + self.random.below(3), self.size.clone());
        let limit = self.uniform_value();
        let limit = self.index(limit, &size);
        let (how, extreme) = *self.random.pick(&[("sub", "smax"), ("add", "smin")]);
        let place = self.define(&format!("{how} nsw %t, {far}"));
        let place = self.define(&format!("call @llvm.{extreme}.i64({place}, {limit})"));
        let at = self.define(&format!("addr i64, %s{array}, {place}"));
        let loaded = self.define(&format!("load {at} -> i64"));
        self.own.push(loaded);
    }

    /// Emits a commutative atomic update of a shared number.
    pub(super) fn commutative_atomic(&mut self) {
        self.met(true, "atomics of other kinds");
        let cell = self.random.below(ATOMIC_CELLS);
        let kind = COMMUTATIVE_ATOMICS[cell as usize % COMMUTATIVE_ATOMICS.len()];
        let order = *self.random.pick(ORDERS);
        let value = self.value();
        let value = self.named(value);
        let at = self.define(&format!("addr i64, %ups, {cell}"));
        let value = match cell < ATOMIC_CELLS / 2 {
            true => value,
            false => self.define(&format!("trunc {value} -> i32")),
        };
        self.define(&format!("atomicrmw {kind} {order} {at}, {value}"));
    }
}
