//! The machine: the state of a run, and the public interface to its memory and output.
//!
//! `externals/`, `parallel/` and `run/` execute bytecode on the state; `run/entry.rs` calls functions.

use crate::bytecode::code::Code;
use crate::bytecode::decode::{Symbols, constant, decode};
use crate::memory::{Memory, ObjectKind};
use crate::state::access_trace::AccessTrace;
use crate::state::linearized_replay::ReplayState;
use crate::state::races::Races;
use crate::state::rank_groups::Group;
use crate::state::strand::{Frame, Strand};
use crate::trap::{Eval, Fault, Trap, TrapKind, fault};
use crate::values::value::{Address, Value};
use gradus_ir::{Body, Entity, FuncId, OpPrinter, Point, Symbol, Unit};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Limits and options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The maximum number of executed instructions.
    pub max_steps: u64,
    /// The maximum number of bytes allocated at one time.
    pub max_bytes: u64,
    /// The maximum call depth.
    pub max_calls: usize,
    /// The seed for a random order of ranks and `par.for` iterations; `None` for index order.
    pub random_order: Option<u64>,
    /// The number of ranks of a team without a stated size.
    pub team: u64,
    /// True to check that each transition between regions is a control edge of the IR and carries the stated
    /// values ([`gradus_ir::Body::control_edges`]); reported as [`crate::TrapKind::ControlEdge`]. Slows down each
    /// region.
    pub check_edges: bool,
    /// True to detect data races, reported as [`crate::TrapKind::Race`]; slows down each access.
    pub races: bool,
    /// True to record accesses and indirect calls, returned by [`Machine::access_trace`].
    pub trace_accesses: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_steps: 2_000_000_000,
            max_bytes: 4 << 30,
            max_calls: 1_000_000,
            random_order: None,
            team: 1,
            check_edges: false,
            races: false,
            trace_accesses: false,
        }
    }
}

/// Executes the functions of a unit in a private memory.
#[derive(Debug)]
pub struct Machine<'u> {
    pub(crate) unit: &'u Unit,
    pub(crate) options: Options,
    pub(crate) memory: Memory,
    pub(crate) symbols: Symbols,
    pub(crate) codes: Vec<Option<Rc<Code>>>,
    pub(crate) strand: Strand,
    pub(crate) groups: Vec<Group>,
    pub(crate) races: Option<Races>,
    pub(crate) trace: Option<Box<AccessTrace>>,
    pub(crate) steps: u64,
    /// The current instruction of the running strand.
    pub(crate) pc: u32,
    pub(crate) output: Vec<u8>,
    /// The type of each exception object.
    pub(crate) thrown: HashMap<u64, u64>,
    pub(crate) caught: Vec<u64>,
    /// The exception types by number.
    pub(crate) type_ids: Vec<u64>,
    pub(crate) errno: Option<Address>,
    pub(crate) random: u64,
    pub(crate) replay: ReplayState,
    /// The control edges taken, in traced runs.
    pub(crate) edges_taken: HashSet<(FuncId, Point, Point)>,
    /// The broadcast values by nesting of teams and number of the `single`, in traced runs.
    pub(crate) broadcasts: HashMap<(usize, u64), Vec<Value>>,
    /// The outcome of the initialisation of memory.
    pub(crate) memory_init: Eval<()>,
}

impl<'u> Machine<'u> {
    /// Creates a machine with the unit's globals in memory.
    pub fn new(unit: &'u Unit) -> Self {
        Machine::with_options(unit, Options::default())
    }

    /// Creates a machine with the given options.
    pub fn with_options(unit: &'u Unit, options: Options) -> Self {
        let mut machine = Machine {
            unit,
            memory: Memory::new(options.max_bytes),
            random: options.random_order.unwrap_or(0) | 1,
            trace: options.trace_accesses.then(Box::default),
            options,
            symbols: Symbols::default(),
            codes: vec![None; unit.functions.len()],
            strand: Strand::default(),
            groups: Vec::new(),
            races: None,
            steps: 0,
            pc: 0,
            output: Vec::new(),
            thrown: HashMap::new(),
            caught: Vec::new(),
            type_ids: Vec::new(),
            errno: None,
            replay: ReplayState::Off,
            edges_taken: HashSet::new(),
            broadcasts: HashMap::new(),
            memory_init: Ok(()),
        };
        machine.memory_init = machine.init_memory();
        machine
    }

    fn init_memory(&mut self) -> Eval<()> {
        let unit = self.unit;
        for (id, _) in unit.functions.iter() {
            let address = self
                .memory
                .allocate(1, 16, ObjectKind::Function(id), true)?;
            self.symbols.functions.push(address);
        }
        for (_, global) in unit.globals.iter() {
            let place = match global.constant {
                true => ObjectKind::Constant,
                false => ObjectKind::Static,
            };
            let size = unit.layout.size_bytes(unit, global.ty);
            let known = global.init.is_some();
            let align = u64::from(global.align_bytes);
            let address = self.memory.allocate(size, align, place, known)?;
            self.symbols.globals.push(address);
        }
        for (id, global) in unit.globals.iter() {
            let Some(init) = &global.init else {
                continue;
            };
            let base = self.symbols.globals[id.index()];
            self.memory.initialize_bytes(base, &init.bytes)?;
            for relocation in &init.relocations {
                let target = match relocation.target {
                    Symbol::Func(func) => self.symbols.functions[func.index()],
                    Symbol::Global(global) => self.symbols.globals[global.index()],
                };
                let word = target.0.wrapping_add(relocation.addend as u64);
                let at = Address(base.0.wrapping_add(relocation.offset_bytes));
                self.memory.initialize_bytes(at, &word.to_le_bytes())?;
            }
        }
        Ok(())
    }

    // ---- memory ----------------------------------------------------------------------------

    /// Allocates memory with the contents `bytes`, aligned like a heap block.
    ///
    /// # Errors
    /// [`TrapKind::Limit`] if the memory limit is exceeded.
    pub fn alloc_bytes(&mut self, bytes: &[u8]) -> Result<Address, Trap> {
        let size = bytes.len() as u64;
        let made = self
            .memory
            .allocate(size, 16, ObjectKind::Static, true)
            .and_then(|address| {
                self.memory.initialize_bytes(address, bytes)?;
                Ok(address)
            });
        self.with_position(made)
    }
    /// Allocates `size_bytes` bytes of uninitialised memory.
    ///
    /// # Errors
    /// [`TrapKind::Limit`] if the memory limit is exceeded.
    pub fn alloc_undefined(&mut self, size_bytes: u64) -> Result<Address, Trap> {
        let made = self
            .memory
            .allocate(size_bytes, 16, ObjectKind::Static, false);
        self.with_position(made)
    }
    /// Allocates memory with the given binary64 numbers.
    ///
    /// # Errors
    /// [`TrapKind::Limit`] if the memory limit is exceeded.
    pub fn alloc_f64(&mut self, numbers: &[f64]) -> Result<Address, Trap> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.alloc_bytes(&bytes)
    }
    /// Reads `size_bytes` bytes at an address; all bytes must be defined.
    ///
    /// # Errors
    /// The traps of a read.
    pub fn read_bytes(&self, address: Address, size_bytes: u64) -> Result<Vec<u8>, Trap> {
        let read = self.memory.bytes(address.0, size_bytes).map(<[u8]>::to_vec);
        self.with_position(read)
    }
    /// Reads `count` binary64 numbers at an address.
    ///
    /// # Errors
    /// The traps of a read.
    pub fn read_f64(&self, address: Address, count: usize) -> Result<Vec<f64>, Trap> {
        let bytes = self.read_bytes(address, count as u64 * 8)?;
        let words = bytes.chunks_exact(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(chunk);
            f64::from_le_bytes(bytes)
        });
        Ok(words.collect())
    }
    /// Returns the bytes of the object that starts at an address; `None` for an undefined byte.
    pub fn snapshot(&self, address: Address) -> Option<Vec<Option<u8>>> {
        self.memory.snapshot(address)
    }
    /// Returns the number of live heap blocks.
    pub fn heap_blocks(&self) -> usize {
        self.memory.heap_blocks()
    }
    /// Returns whether a 64-bit word is an address inside or at the end of a live object.
    pub fn is_valid_address(&self, word: u64) -> bool {
        self.memory.in_bounds(word)
    }
    /// Returns the address of a function or global variable.
    pub fn symbol(&self, name: &str) -> Option<Address> {
        Some(match self.unit.symbol(name)? {
            Symbol::Func(func) => self.symbols.functions[func.index()],
            Symbol::Global(global) => self.symbols.globals[global.index()],
        })
    }

    // ---- results and code ------------------------------------------------------------------

    /// Returns the program's output so far.
    pub fn output(&self) -> &[u8] {
        &self.output
    }
    /// Returns the number of executed instructions so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
    /// Returns the value of a constant of the unit.
    pub fn constant(&self, id: gradus_ir::ConstId) -> Option<Value> {
        constant(self.unit, &self.symbols, id).ok()
    }

    /// Returns the bytecode of a function, decoded on first use.
    pub(crate) fn code(&mut self, func: FuncId) -> Eval<Rc<Code>> {
        if let Some(code) = &self.codes[func.index()] {
            return Ok(Rc::clone(code));
        }
        let function = &self.unit.functions[func];
        let Some(body) = &function.body else {
            let text = format!(
                "`{}` has no body and is not a known external function",
                function.name
            );
            return fault(TrapKind::Unsupported, text);
        };
        let code = Rc::new(decode(
            self.unit,
            &self.symbols,
            func,
            body,
            self.options.check_edges,
        ));
        self.codes[func.index()] = Some(Rc::clone(&code));
        Ok(code)
    }

    /// Returns the number of an exception type, counted from 1.
    pub(crate) fn type_id(&mut self, ty: u64) -> u64 {
        let known = self.type_ids.iter().position(|t| *t == ty);
        let index = known.unwrap_or_else(|| {
            self.type_ids.push(ty);
            self.type_ids.len() - 1
        });
        index as u64 + 1
    }

    /// Returns a function's name for messages.
    pub(crate) fn function_name(&self, func: FuncId) -> &str {
        debug_assert!(func.index() < self.unit.functions.len());
        &self.unit.functions[func].name
    }

    /// Adds the position of the current instruction to a fault.
    pub(crate) fn with_position<T>(&self, outcome: Eval<T>) -> Result<T, Trap> {
        outcome.map_err(|Fault { kind, message }| {
            let mut trap = Trap {
                kind,
                message,
                function: String::new(),
                op: String::new(),
                span: None,
            };
            if let Some(frame) = self.strand.frames.last() {
                let function = &self.unit.functions[frame.code.func];
                trap.function = function
                    .source_name
                    .as_ref()
                    .unwrap_or(&function.name)
                    .clone();
                if let Some(body) = &function.body {
                    self.locate(&mut trap, frame, body, &function.param_names);
                }
            }
            trap
        })
    }

    fn locate(&self, trap: &mut Trap, frame: &Frame, body: &Body, param_names: &[Option<String>]) {
        if let Some(&op) = frame.code.ops.get(self.pc as usize) {
            trap.op = OpPrinter::new(self.unit, body, param_names).line(op);
            trap.span = self.unit.span(body.ops[op].loc);
        }
    }
}
