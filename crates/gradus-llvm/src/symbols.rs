//! What the module defines, who reaches whom, and what the source called things.
use crate::ffi::*;
use crate::host::Host;
use gradus_ir::known::is_text_object;
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMValueKind};
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_uint, c_void};

/// A line of the user's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Path as the compiler recorded it, joined to its directory when relative.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

unsafe extern "C" {
    fn gr_argument_names(
        function: LLVMValueRef,
        sink: extern "C" fn(*mut c_void, c_uint, *const c_char, usize),
        data: *mut c_void,
    );
    fn gr_c_types(
        function: LLVMValueRef,
        sink: extern "C" fn(*mut c_void, c_uint, *const c_char, usize),
        data: *mut c_void,
    );
}

extern "C" fn take_type(types: *mut c_void, _: c_uint, text: *const c_char, len: usize) {
    let types = unsafe { &mut *types.cast::<Vec<Option<String>>>() };
    let text = unsafe { text_of(text, len) };
    types.push((!text.is_empty()).then_some(text));
}

extern "C" fn take_name(names: *mut c_void, index: c_uint, text: *const c_char, len: usize) {
    let names = unsafe { &mut *names.cast::<Vec<Option<String>>>() };
    let text = unsafe { text_of(text, len) };
    if let Some(slot) = names.get_mut(index as usize)
        && slot.is_none()
        && !text.is_empty()
    {
        *slot = Some(text);
    }
}

impl Host {
    /// The names of all functions with a body, in module order.
    pub fn defined_functions(&self) -> Vec<String> {
        let all = self.functions().into_iter();
        all.filter(|f| unsafe { LLVMIsDeclaration(*f) } == 0)
            .map(|f| unsafe { name_of(f) })
            .collect()
    }

    /// True where the module defines a function of this name.
    pub fn defines(&self, name: &str) -> bool {
        self.function(name)
            .is_some_and(|f| unsafe { LLVMIsDeclaration(f) } == 0)
    }

    /// The defined functions that `roots` reach through calls or by taking addresses, also through the
    /// initialisers of globals; roots first, then in the order found. Unknown roots are left out.
    pub fn closure(&self, roots: &[&str]) -> Vec<String> {
        let mut walk = Walk {
            by_address: self.taken_by_type(),
            ..Walk::default()
        };
        for f in roots.iter().filter_map(|r| self.function(r)) {
            walk.visit(f);
        }
        let mut at = 0;
        while at < walk.functions.len() {
            let f = walk.functions[at];
            at += 1;
            walk.body(f);
        }
        walk.functions
            .iter()
            .map(|f| unsafe { name_of(*f) })
            .collect()
    }

    /// The functions whose address is taken, by type.
    fn taken_by_type(&self) -> HashMap<LLVMTypeRef, Vec<LLVMValueRef>> {
        let mut found: HashMap<LLVMTypeRef, Vec<LLVMValueRef>> = HashMap::new();
        for function in self.functions() {
            if is_taken(function) {
                let ty = unsafe { LLVMGlobalGetValueType(function) };
                found.entry(ty).or_default().push(function);
            }
        }
        found
    }

    /// What the source calls each parameter of a function: the IR's own name, else DWARF's, else `arg0`…
    pub fn argument_names(&self, function: &str) -> Vec<String> {
        let names = self
            .function(function)
            .map(|f| self.parameter_names(f))
            .unwrap_or_default();
        let named = |(i, name): (usize, Option<String>)| name.unwrap_or_else(|| format!("arg{i}"));
        names.into_iter().enumerate().map(named).collect()
    }

    /// As [`Host::argument_names`], `None` where nobody says.
    pub(crate) fn parameter_names(&self, f: LLVMValueRef) -> Vec<Option<String>> {
        let count = unsafe { LLVMCountParams(f) };
        let mut from_debug: Vec<Option<String>> = vec![None; count as usize];
        unsafe { gr_argument_names(f, take_name, (&raw mut from_debug).cast()) };
        let from_ir = |i: u32| {
            let name = unsafe { name_of(LLVMGetParam(f, i)) };
            let own = name.split(".coerce").next().unwrap_or_default().to_string();
            (!own.is_empty() && !own.starts_with(|c: char| c.is_ascii_digit())).then_some(own)
        };
        (0..count)
            .map(|i| from_ir(i).or(from_debug[i as usize].take()))
            .collect()
    }

    /// C's spellings of a function's result and of the source's parameters, in this order, as debug
    /// information gives them; typedefs are followed, and `None` stands for what C cannot spell. Empty
    /// without debug information.
    pub fn c_types(&self, function: &str) -> Vec<Option<String>> {
        let mut types: Vec<Option<String>> = Vec::new();
        if let Some(f) = self.function(function) {
            unsafe { gr_c_types(f, take_type, (&raw mut types).cast()) };
        }
        types
    }

    /// Whether the module declares or defines a function or variable of this name.
    pub fn has_symbol(&self, name: &str) -> bool {
        let text = c_string(name);
        self.function(name).is_some()
            || !unsafe { LLVMGetNamedGlobal(self.module, text.as_ptr()) }.is_null()
    }

    /// Where the source defines a function, if the module says so.
    pub fn source_line(&self, function: &str) -> Option<SourceLine> {
        let f = self.function(function)?;
        unsafe {
            let program = LLVMGetSubprogram(f);
            if program.is_null() {
                return None;
            }
            let file = LLVMDIScopeGetFile(program);
            let file = if file.is_null() {
                String::new()
            } else {
                path_of(file)
            };
            Some(SourceLine {
                file,
                line: LLVMDISubprogramGetLine(program),
            })
        }
    }
}

/// The path of a `DIFile`.
///
/// # Safety
/// `file` is a live `DIFile`.
pub(crate) unsafe fn path_of(file: LLVMMetadataRef) -> String {
    unsafe {
        let mut len = 0;
        let name = LLVMDIFileGetFilename(file, &mut len);
        let name = text_of(name, len as usize);
        let directory = LLVMDIFileGetDirectory(file, &mut len);
        let directory = text_of(directory, len as usize);
        if name.starts_with('/') || directory.is_empty() {
            name
        } else {
            format!("{directory}/{name}")
        }
    }
}

/// Finds functions through operands and constants; each constant is looked at once.
#[derive(Default)]
struct Walk {
    functions: Vec<LLVMValueRef>,
    seen: HashSet<LLVMValueRef>,
    pending: Vec<LLVMValueRef>,
    /// The module's functions whose address is taken, by type: a call through a pointer may lead to
    /// any of its type.
    by_address: HashMap<LLVMTypeRef, Vec<LLVMValueRef>>,
}

impl Walk {
    fn called_by_address(&mut self, inst: LLVMValueRef) {
        let ty = unsafe {
            let opcode = LLVMGetInstructionOpcode(inst);
            let is_call = matches!(opcode, LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke);
            if !is_call || !LLVMIsAConstant(LLVMGetCalledValue(inst)).is_null() {
                return;
            }
            LLVMGetCalledFunctionType(inst)
        };
        for function in self.by_address.remove(&ty).unwrap_or_default() {
            self.visit(function);
        }
    }

    fn body(&mut self, function: LLVMValueRef) {
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut inst = LLVMGetFirstInstruction(block);
                while !inst.is_null() {
                    self.called_by_address(inst);
                    for i in 0..LLVMGetNumOperands(inst) as u32 {
                        let operand = LLVMGetOperand(inst, i);
                        if !LLVMIsAConstant(operand).is_null() {
                            self.visit(operand);
                        }
                    }
                    inst = LLVMGetNextInstruction(inst);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
    }

    fn visit(&mut self, constant: LLVMValueRef) {
        self.pending.push(constant);
        while let Some(c) = self.pending.pop() {
            if !self.seen.insert(c) {
                continue;
            }
            unsafe {
                match LLVMGetValueKind(c) {
                    LLVMValueKind::LLVMFunctionValueKind => {
                        if LLVMIsDeclaration(c) == 0 && !is_text_object(&name_of(c)) {
                            self.functions.push(c);
                        }
                        continue;
                    }
                    LLVMValueKind::LLVMGlobalVariableValueKind => {
                        let init = LLVMGetInitializer(c);
                        if !init.is_null() {
                            self.pending.push(init);
                        }
                        continue;
                    }
                    _ => {}
                }
                for i in 0..LLVMGetNumOperands(c).max(0) as u32 {
                    let operand = LLVMGetOperand(c, i);
                    if !operand.is_null() && !LLVMIsAConstant(operand).is_null() {
                        self.pending.push(operand);
                    }
                }
            }
        }
    }
}

/// Whether a function is mentioned otherwise than as what is called.
fn is_taken(function: LLVMValueRef) -> bool {
    unsafe {
        let mut at = LLVMGetFirstUse(function);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            let calls = (!LLVMIsACallInst(user).is_null() || !LLVMIsAInvokeInst(user).is_null())
                && LLVMGetCalledValue(user) == function
                && (0..LLVMGetNumArgOperands(user)).all(|i| LLVMGetOperand(user, i) != function);
            if !calls {
                return true;
            }
            at = LLVMGetNextUse(at);
        }
    }
    false
}
