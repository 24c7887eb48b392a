//! Symbol queries: definitions, calls, argument names, source lines, and C types from debug information.

use crate::host::ffi::users_of;
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::host::source_files::file_name;
use gradus_ir::SourceSpan;
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use std::ffi::{c_char, c_uint, c_void};

/// A line of the user's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Path as recorded by the compiler; a relative path is joined to its directory.
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
    fn gr_demangled(
        symbol: *const c_char,
        len: usize,
        sink: extern "C" fn(*mut c_void, c_uint, *const c_char, usize),
        data: *mut c_void,
    );
    fn gr_array_descriptors(
        function: LLVMValueRef,
        sink: extern "C" fn(*mut c_void, c_uint, *const c_char, usize),
        data: *mut c_void,
    );
    fn gr_argument_shapes(
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

/// A Fortran argument passed by descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayDescriptor {
    /// `s`: assumed shape; `a`: allocatable; `p`: pointer; `r`: assumed rank.
    pub kind: char,
    /// The number of dimensions.
    pub rank: u32,
    /// C's spelling of the element type; empty if C has none.
    pub elem: String,
}

impl ArrayDescriptor {
    /// Parses `KIND RANK ELEM`.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        Some(ArrayDescriptor {
            kind: words.next()?.chars().next()?,
            rank: words.next()?.parse().ok()?,
            elem: words.next()?.to_string(),
        })
    }
}

/// Returns the demangled name of a C++ or Rust symbol, with scopes and types: `a::f(double)` for
/// `_ZN1a1fEd`. Other symbols stay unchanged.
pub fn demangle(symbol: &str) -> String {
    let mut texts: Vec<Option<String>> = Vec::new();
    // SAFETY: the symbol's bytes live through the call, and the sink's data has the type that `push_text`
    // expects.
    unsafe {
        gr_demangled(
            symbol.as_ptr().cast(),
            symbol.len(),
            push_text,
            (&raw mut texts).cast(),
        );
    }
    let text = texts.pop().flatten().unwrap_or_else(|| symbol.to_string());
    without_hash(&text).to_string()
}

/// Returns a Rust name without the hash that distinguishes crates: `d::deep::cube::h0123456789abcdef`.
fn without_hash(text: &str) -> &str {
    let is_hash = |h: &str| h.len() == 16 && h.bytes().all(|b| b.is_ascii_hexdigit());
    match text.rsplit_once("::h") {
        Some((name, hash)) if is_hash(hash) => name,
        _ => text,
    }
}

/// Splits a qualified name from the parameters. The result type of a function template's instance is left
/// out.
pub fn split_parameters(full: &str) -> (&str, &str) {
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in full.char_indices() {
        let is_operator = full[..at].trim_end().ends_with("operator");
        match c {
            '<' if !is_operator => depth += 1,
            '>' if depth > 0 => depth -= 1,
            ' ' if depth == 0 && !is_operator => begin = at + 1,
            '(' if depth == 0 && !is_operator => return (&full[begin..at], &full[at..]),
            _ => {}
        }
    }
    (&full[begin..], "")
}

/// The number of characters from which template arguments are left out of a name.
const NAME_LENGTH_MAX: usize = 100;

/// Returns the name of a C++ or Rust symbol with its scopes, without parameters: `a::f` for `_ZN1a1fEd`. `None` for other
/// symbols. The arguments of templates are left out of a long name.
pub(crate) fn qualified_name(symbol: &str) -> Option<String> {
    let full = demangle(symbol);
    let (head, _) = split_parameters(&full);
    let name = match head.chars().count() > NAME_LENGTH_MAX {
        true => without_template_arguments(head),
        false => head.to_string(),
    };
    (full != symbol && !name.is_empty()).then_some(name)
}

fn without_template_arguments(head: &str) -> String {
    let (mut depth, mut name) = (0, String::new());
    for c in head.chars() {
        match c {
            '<' if depth == 0 => (depth, name) = (1, name + "<…>"),
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            c if depth == 0 => name.push(c),
            _ => {}
        }
    }
    name
}

extern "C" fn push_text(types: *mut c_void, _: c_uint, text: *const c_char, len: usize) {
    let types = unsafe { &mut *types.cast::<Vec<Option<String>>>() };
    let text = unsafe { text_of(text, len) };
    types.push((!text.is_empty()).then_some(text));
}

extern "C" fn set_name(names: *mut c_void, index: c_uint, text: *const c_char, len: usize) {
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
    /// Returns the calls of a declared function with the given number of arguments.
    pub(crate) fn calls_of(&self, name: &str, arguments: u32) -> Vec<LLVMValueRef> {
        let mut calls = Vec::new();
        unsafe {
            let name = c_string(name);
            let called = LLVMGetNamedFunction(self.module, name.as_ptr());
            if called.is_null() || LLVMIsDeclaration(called) == 0 {
                return calls;
            }
            for user in users_of(called) {
                let is_call = !LLVMIsACallInst(user).is_null();
                if is_call
                    && LLVMGetCalledValue(user) == called
                    && LLVMGetNumArgOperands(user) == arguments
                {
                    calls.push(user);
                }
            }
        }
        calls
    }
    /// Returns the names of all functions with a body, in module order.
    pub fn defined_functions(&self) -> Vec<String> {
        let all = self.functions().into_iter();
        all.filter(|f| unsafe { LLVMIsDeclaration(*f) } == 0)
            .map(|f| unsafe { name_of(f) })
            .collect()
    }

    /// Returns true if the module defines a function of the given name.
    pub fn defines(&self, name: &str) -> bool {
        self.function(name)
            .is_some_and(|f| unsafe { LLVMIsDeclaration(f) } == 0)
    }

    /// Returns true if a function has local linkage.
    pub fn has_local_linkage(&self, name: &str) -> bool {
        use llvm_sys::LLVMLinkage::{LLVMInternalLinkage, LLVMPrivateLinkage};
        let own = [LLVMInternalLinkage, LLVMPrivateLinkage];
        self.function(name)
            .is_some_and(|f| own.contains(&unsafe { LLVMGetLinkage(f) }))
    }

    /// Returns the source name of each parameter of a function: the IR's name, otherwise DWARF's, otherwise
    /// `arg0`…
    pub fn argument_names(&self, function: &str) -> Vec<String> {
        let names = self
            .function(function)
            .map(|f| self.parameter_names(f))
            .unwrap_or_default();
        let named = |(i, name): (usize, Option<String>)| name.unwrap_or_else(|| format!("arg{i}"));
        names.into_iter().enumerate().map(named).collect()
    }

    /// Like [`Host::argument_names`], with `None` for an unknown name.
    pub(crate) fn parameter_names(&self, f: LLVMValueRef) -> Vec<Option<String>> {
        let count = unsafe { LLVMCountParams(f) };
        let mut from_debug: Vec<Option<String>> = vec![None; count as usize];
        unsafe { gr_argument_names(f, set_name, (&raw mut from_debug).cast()) };
        let from_ir = |i: u32| {
            let name = unsafe { name_of(LLVMGetParam(f, i)) };
            let own = name.split(".coerce").next().unwrap_or_default().to_string();
            (!own.is_empty() && !own.starts_with(|c: char| c.is_ascii_digit())).then_some(own)
        };
        (0..count)
            .map(|i| from_ir(i).or(from_debug[i as usize].take()))
            .collect()
    }

    /// Returns C's spellings of a function's result and of its source parameters, in order, from debug
    /// information. Typedefs are resolved, and `None` is a type without a C spelling. Empty without debug
    /// information.
    pub fn c_types(&self, function: &str) -> Vec<Option<String>> {
        let mut types: Vec<Option<String>> = Vec::new();
        if let Some(f) = self.function(function) {
            unsafe { gr_c_types(f, push_text, (&raw mut types).cast()) };
        }
        types
    }

    /// Returns the array descriptors that Fortran passes for a function's result and its source parameters,
    /// in order. Empty without debug information.
    pub fn array_descriptors(&self, function: &str) -> Vec<Option<ArrayDescriptor>> {
        let mut texts: Vec<Option<String>> = Vec::new();
        if let Some(f) = self.function(function) {
            unsafe { gr_array_descriptors(f, push_text, (&raw mut texts).cast()) };
        }
        let read = |text: Option<String>| ArrayDescriptor::read(&text?);
        texts.into_iter().map(read).collect()
    }

    /// Returns the shapes of a function's result and of its source parameters, in order, if Fortran passes the
    /// parameter by address without a descriptor. A scalar has no extents; an extent is `None` unless constant.
    /// Empty without debug information.
    pub fn argument_shapes(&self, function: &str) -> Vec<Option<Vec<Option<u64>>>> {
        let mut texts: Vec<Option<String>> = Vec::new();
        if let Some(f) = self.function(function) {
            // SAFETY: the function belongs to the module, and the sink receives the list that it was given.
            unsafe { gr_argument_shapes(f, push_text, (&raw mut texts).cast()) };
        }
        let extents = |text: String| text.split(' ').skip(1).map(|n| n.parse().ok()).collect();
        texts.into_iter().map(|text| text.map(extents)).collect()
    }

    /// Makes a function callable from other files by its symbol, and preserves the function without
    /// callers.
    pub fn make_callable(&self, name: &str) {
        let Some(function) = self.function(name) else {
            unreachable!("only functions of the module become callable");
        };
        // SAFETY: the function belongs to the module, which lives as long as `self`.
        unsafe {
            match LLVMGetLinkage(function) {
                LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage => {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMExternalLinkage);
                }
                LLVMLinkage::LLVMLinkOnceAnyLinkage => {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMWeakAnyLinkage);
                }
                LLVMLinkage::LLVMLinkOnceODRLinkage => {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMWeakODRLinkage);
                }
                _ => {}
            }
        }
    }

    /// Returns whether the module declares or defines a function or variable of the given name.
    pub fn has_symbol(&self, name: &str) -> bool {
        let text = c_string(name);
        self.function(name).is_some()
            || !unsafe { LLVMGetNamedGlobal(self.module, text.as_ptr()) }.is_null()
    }

    /// Returns the source position of a function's definition, from debug information.
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

/// Returns the path of a `DIFile`.
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

/// Returns the source location of an instruction; `None` without a line in the debug information.
///
/// # Safety
/// `inst` is a live instruction.
pub(crate) unsafe fn source_location(inst: LLVMValueRef) -> Option<SourceSpan> {
    unsafe {
        let location = LLVMInstructionGetDebugLoc(inst);
        if location.is_null() {
            return None;
        }
        let scope = LLVMDILocationGetScope(location);
        let file = LLVMDIScopeGetFile(scope);
        let line = LLVMDILocationGetLine(location);
        (!file.is_null() && line > 0).then(|| SourceSpan {
            file: file_name(scope),
            line,
            column: LLVMDILocationGetColumn(location),
            called_at: None,
        })
    }
}
