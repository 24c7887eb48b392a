//! Random programs with consecutive kernel launches: a launch reads results of the previous one, each
//! thread its own or another thread's, from arrays that may be equal as far as the kernels know.
//!
//! Launches are race-free: each thread writes a single cell, and cells read by other threads are elsewhere
//! in the actual layout. Accesses of different launches may conflict. The program itself implements the
//! runtime's queries: memory is a single block, in which every array is an allocation.

use super::Random;
use super::gpu::KernelProgram;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The number of pointers passed to kernels.
const POINTERS: usize = 4;
/// The number of cells of an array, and the maximum number accessed by threads.
const CELLS: u32 = 40;
/// The number of threads of a block.
const BLOCK: u32 = 8;

/// The actual target of a pointer: array number and cell.
type ActualCell = (u32, u32);

struct Launches {
    random: Random,
    out: String,
    places: Vec<ActualCell>,
    features: BTreeSet<&'static str>,
}

/// Returns the program of a seed.
pub(super) fn launches(seed: u64) -> KernelProgram {
    let mut random = Random::new(seed ^ 0x6c61_756e);
    let apart = random.below(2) == 0;
    let places = (0..POINTERS as u32).map(|number| match apart {
        true => (number, 0),
        false => (random.below(POINTERS as u32), random.below(3)),
    });
    let places = places.collect();
    let mut writer = Launches {
        random,
        out: String::new(),
        places,
        features: BTreeSet::from(["launches"]),
    };
    writer.program();
    KernelProgram {
        text: writer.out,
        features: writer.features,
    }
}

impl Launches {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }

    fn program(&mut self) {
        self.runtime_queries();
        let count = 2 + self.random.below(2);
        self.line(
            "func @k(%p0: ptr, %p1: ptr, %p2: ptr, %p3: ptr, %n: i32, %g: i32) {\n%h0 = load %p0 -> i64",
        );
        for number in 1..=count {
            if number > 1 && self.random.below(3) == 0 {
                self.features.insert("host reads between launches");
                let from = self.random.below(POINTERS as u32);
                self.line(&format!("%h{number} = load %p{from} -> i64"));
            } else {
                self.line(&format!("%h{number} = add %h{}, 1", number - 1));
            }
            self.launch(number);
        }
        self.line("return\n}");
        self.start();
    }

    /// Emits the runtime's queries.
    fn runtime_queries(&mut self) {
        let bytes = 8 * CELLS;
        let sizes = "%s: ptr, %gx: i32, %gy: i32, %gz: i32, %bx: i32, %by: i32, %bz: i32, %m: i64";
        self.line(&format!(
            "global @memory: [1 x ptr] = zero 8\n\
             func @__gr_launch_begin({sizes}) -> i32 {{\nreturn i32 0\n}}\n\
             func @__gr_launch_with({sizes}) -> i32 {{\nreturn i32 1\n}}\n\
             func @__gr_apart(%p: ptr, %q: ptr) -> i32 {{\n\
             %start = load @memory -> ptr\n%from = ptrtoint %start -> i64\n\
             %pi = ptrtoint %p -> i64\n%pd = sub %pi, %from\n%pn = udiv %pd, {bytes}\n\
             %qi = ptrtoint %q -> i64\n%qd = sub %qi, %from\n%qn = udiv %qd, {bytes}\n\
             %c = icmp ne %pn, %qn\n%r = zext %c -> i32\nreturn %r\n}}\n\
             func @__gr_activity_end() {{\nreturn\n}}"
        ));
    }

    /// Emits the function that fills memory, runs the kernels, and sums the results.
    fn start(&mut self) {
        let cells = CELLS * POINTERS as u32;
        self.line(&format!(
            "func @f() -> i64 {{\n%all = alloca [{cells} x i64], 1\nstore %all, @memory\n\
             for %i < {cells} {{\n%first = mul %i, 7\n%to = addr i64, %all, %i\nstore %first, %to\nyield\n}}"
        ));
        let places = self.places.clone();
        for (number, (array, cell)) in places.into_iter().enumerate() {
            let first = array * CELLS + cell;
            self.line(&format!("%a{number} = addr i64, %all, {first}"));
        }
        let blocks = 2 + self.random.below(3);
        let threads = blocks * BLOCK - self.random.below(5);
        self.line(&format!(
            "call @k(%a0, %a1, %a2, %a3, i32 {threads}, i32 {blocks})\n\
             %sum = for %j < {cells} iter(%old = 0) {{\n%at = addr i64, %all, %j\n%v = load %at -> i64\n\
             %m = mul %old, 31\n%new = add %m, %v\nyield %new\n}}\nreturn %sum\n}}"
        ));
    }

    /// Emits a launch: each thread sums some cells and stores the sum.
    fn launch(&mut self, l: u32) {
        let sizes = format!("%g, i32 1, i32 1, i32 {BLOCK}, i32 1, i32 1, i64 0");
        self.line(&format!(
            "%s{l} = call @__gr_launch_begin(%p0, {sizes})\n%t{l} = icmp eq %s{l}, i32 0\nif %t{l} {{\n\
             %G{l} = zext %g -> i64\n\
             spmd grid %G{l}, i64 1, i64 1 {{ |%b{l}: i64, %by{l}: i64, %bz{l}: i64, %gx{l}: i64, %gy{l}: i64, %gz{l}: i64|\n\
             %bi{l} = trunc %b{l} -> i32\n\
             spmd block i64 {BLOCK}, i64 1, i64 1 {{ |%e{l}: i64, %ey{l}: i64, %ez{l}: i64, %n{l}: i64, %ny{l}: i64, %nz{l}: i64|\n\
             %ei{l} = trunc %e{l} -> i32\n%ni{l} = trunc %n{l} -> i32\n%row{l} = mul %bi{l}, %ni{l}\n%i{l} = add %row{l}, %ei{l}"
        ));
        let start = self.shared(l);
        self.line(&format!(
            "%in{l} = icmp slt %i{l}, %n\nif %in{l} {{\n%w{l} = sext %i{l} -> i64"
        ));
        self.thread(l, &start);
        self.line("yield\n} else {\nyield\n}\nyield\n}\nyield\n}\ncall @__gr_activity_end()\nyield\n} else {\nyield\n}");
    }

    /// Returns a thread's initial number: a number loaded by the host, or a result of another thread of the
    /// block.
    fn shared(&mut self, l: u32) -> String {
        if self.random.below(4) > 0 {
            return format!("%h{l}");
        }
        self.features.insert("launch with a barrier");
        self.line(&format!(
            "%sh{l} = alloca shared [{BLOCK} x i64], 1\n%so{l} = addr i64, %sh{l}, %e{l}\nstore %e{l}, %so{l}\n\
             barrier block\n%sx{l} = xor %e{l}, 3\n%sa{l} = addr i64, %sh{l}, %sx{l}\n%sv{l} = load %sa{l} -> i64"
        ));
        format!("%sv{l}")
    }

    fn thread(&mut self, l: u32, start: &str) {
        let to = self.random.below(POINTERS as u32);
        let at = self.random.below(3);
        let own = self.actual_cell(to, at);
        let mut sum = start.to_string();
        for read in 0..1 + self.random.below(3) {
            let (from, cell) = (self.random.below(POINTERS as u32), self.random.below(3));
            // The thread's own cell, or an array not written by this launch.
            let real = self.actual_cell(from, cell);
            if real.0 == own.0 && real.1 != own.1 {
                continue;
            }
            let name = format!("{l}r{read}");
            self.line(&format!(
                "%p{name} = addr i64, %p{from}, %w{l}\n%q{name} = addr i64, %p{name}, {cell}\n\
                 %v{name} = load %q{name} -> i64\n%m{name} = mul {sum}, 3\n%u{name} = add %m{name}, %v{name}"
            ));
            sum = format!("%u{name}");
        }
        self.line(&format!(
            "%o{l} = addr i64, %p{to}, %w{l}\n%oc{l} = addr i64, %o{l}, {at}\nstore {sum}, %oc{l}"
        ));
    }

    /// Returns the actual location of a cell behind a pointer.
    fn actual_cell(&self, pointer: u32, cell: u32) -> ActualCell {
        let (array, first) = self.places[pointer as usize];
        (array, first + cell)
    }
}
