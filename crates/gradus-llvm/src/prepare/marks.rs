//! Annotations of the user interface in a module: string attributes of functions, arguments and calls,
//! metadata of functions, variables and instructions, annotations of arguments, locals and fields.
//!
//! [`Host::marks`] lists all annotations before any pass runs, so that each is honoured or refused.
//! [`Host::outline_inactive`] outlines the instructions that are marked inactive: each becomes a call of a
//! separate function, which is then stated to be inactive. LLVM inlines these functions again after
//! differentiation.

use crate::host::calls::is_call;
use crate::host::ffi::users_of;
use crate::host::ffi::*;
use crate::host::metadata_kinds::metadata_kinds;
use crate::host::module::Host;
use crate::host::symbols::{path_of, source_location};
use crate::prepare::global_registrations::{InitCell, read_cell};
use gradus_ir::SourceSpan;
use gradus_ir::externals::interface_keyword;
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use llvm_sys::{
    LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMLinkage, LLVMOpcode, LLVMValueKind,
};
use std::collections::HashSet;
use std::ptr::null_mut;

unsafe extern "C" {
    fn gr_variable_attributes(
        variable: LLVMValueRef,
        list: *mut LLVMAttributeRef,
        room: usize,
    ) -> usize;
}

/// The form of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkForm {
    /// A string attribute of LLVM's IR.
    Attribute,
    /// Metadata.
    Metadata,
    /// `annotate` on neither a function nor a file-scope variable.
    Annotation,
}

/// The bearer of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// A function.
    Function(String),
    /// A variable of file scope.
    Variable(String),
    /// A call or another instruction, by its number among the marked instructions.
    Instruction(usize),
    /// An argument, a result, a local variable or a field.
    Component,
}

/// A mark.
#[derive(Clone, Debug)]
pub struct Marked {
    /// The form.
    pub form: MarkForm,
    /// The name after the prefix of the interface.
    pub word: String,
    /// The value of an attribute, or the text after `=` in an annotation.
    pub text: String,
    /// The functions and numbers in the metadata node.
    pub operands: Vec<InitCell>,
    /// The bearer.
    pub bearer: Bearer,
    /// The source location, if known.
    pub span: Option<SourceSpan>,
}

/// The marked instructions, by number.
#[derive(Debug, Default)]
pub struct MarkedInstructions(Vec<LLVMValueRef>);

impl Host {
    /// Returns all marks of the module, in module order.
    pub fn marks(&self) -> (Vec<Marked>, MarkedInstructions) {
        let names = metadata_kinds(self.ctx).into_iter().zip(0..);
        let named =
            names.filter_map(|(name, kind)| Some((interface_keyword(&name)?.to_string(), kind)));
        let mut reader = Reader {
            kinds: named.collect(),
            found: Vec::new(),
            instructions: Vec::new(),
        };
        for variable in self.variables() {
            reader.metadata_of_global(variable, Bearer::Variable);
            reader.attributes_of_variable(variable);
        }
        for function in self.functions() {
            reader.function(function);
        }
        (reader.found, MarkedInstructions(reader.instructions))
    }

    /// Returns the loads and stores of inactive variables, and the variables whose addresses escape.
    pub fn accesses_of(
        &self,
        variables: &[String],
    ) -> (Vec<LoadOrStore>, Vec<(String, Option<SourceSpan>)>) {
        let (mut found, mut elsewhere) = (Vec::new(), Vec::new());
        for name in variables {
            let global = unsafe { LLVMGetNamedGlobal(self.module, c_string(name).as_ptr()) };
            if global.is_null() {
                continue;
            }
            match unsafe { accesses(global) } {
                Ok(list) => found.extend(list.into_iter().map(LoadOrStore)),
                Err(user) => elsewhere.push((name.clone(), unsafe { source_location(user) })),
            }
        }
        (found, elsewhere)
    }

    /// Outlines instructions. Returns the names of the new functions, and the numbers of the instructions
    /// that cannot be outlined: terminators, phis, allocas, and instructions with metadata, token or label
    /// operands.
    pub fn outline_inactive(
        &mut self,
        marked: &MarkedInstructions,
        wanted: &[usize],
        accesses: &[LoadOrStore],
    ) -> (Vec<String>, Vec<usize>) {
        let (mut names, mut refused) = (Vec::new(), Vec::new());
        for &number in wanted {
            match unsafe { self.outline(marked.0[number]) } {
                Some(name) => names.push(name),
                None => refused.push(number),
            }
        }
        for access in accesses {
            names.extend(unsafe { self.outline(access.0) });
        }
        self.invalidate_units();
        (names, refused)
    }

    /// Returns true if a marked instruction may write memory or yields an address.
    pub fn writes_or_points(&self, marked: &MarkedInstructions, number: usize) -> bool {
        unsafe {
            let inst = marked.0[number];
            let ty = LLVMGetTypeKind(LLVMTypeOf(inst));
            let reads_only = matches!(
                LLVMGetInstructionOpcode(inst),
                LLVMOpcode::LLVMStore
                    | LLVMOpcode::LLVMCall
                    | LLVMOpcode::LLVMInvoke
                    | LLVMOpcode::LLVMAtomicRMW
                    | LLVMOpcode::LLVMAtomicCmpXchg
            );
            reads_only || ty == llvm_sys::LLVMTypeKind::LLVMPointerTypeKind
        }
    }

    /// Returns true if a marked instruction calls a function.
    pub fn is_call(&self, marked: &MarkedInstructions, number: usize) -> bool {
        unsafe { LLVMGetInstructionOpcode(marked.0[number]) == LLVMOpcode::LLVMCall }
    }

    /// Returns the functions and variables that are only declared, with the location of their first use.
    pub fn undefined(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<(String, Option<SourceSpan>)> {
        let all = self.functions().into_iter().chain(self.variables());
        let declared = all.filter(|v| unsafe { LLVMIsDeclaration(*v) } != 0);
        let named = declared.map(|v| (unsafe { name_of(v) }, v));
        let wanted = named.filter(|(name, _)| wanted(name));
        wanted
            .map(|(name, v)| (name, unsafe { first_use_location(v) }))
            .collect()
    }

    /// Returns true if a variable has internal linkage.
    pub fn is_static(&self, variable: &str) -> bool {
        let global = unsafe { LLVMGetNamedGlobal(self.module, c_string(variable).as_ptr()) };
        !global.is_null() && unsafe { LLVMGetLinkage(global) } == LLVMLinkage::LLVMInternalLinkage
    }

    /// Returns true if a variable has private linkage, such as a string literal.
    pub fn is_private(&self, variable: &str) -> bool {
        let global = unsafe { LLVMGetNamedGlobal(self.module, c_string(variable).as_ptr()) };
        !global.is_null() && unsafe { LLVMGetLinkage(global) } == LLVMLinkage::LLVMPrivateLinkage
    }

    /// Turns variables that serve as names only into declarations: no code reads their contents.
    pub fn make_declaration(&mut self, wanted: &dyn Fn(&str) -> bool) {
        for variable in self.variables() {
            unsafe {
                if LLVMIsDeclaration(variable) == 0 && wanted(&name_of(variable)) {
                    LLVMSetInitializer(variable, null_mut());
                    LLVMSetLinkage(variable, LLVMLinkage::LLVMExternalLinkage);
                    LLVMSetGlobalConstant(variable, 0);
                }
            }
        }
        self.invalidate_units();
    }

    /// Outlines an instruction into a new function, and replaces the instruction by a call.
    unsafe fn outline(&mut self, inst: LLVMValueRef) -> Option<String> {
        unsafe {
            let opcode = LLVMGetInstructionOpcode(inst);
            let stays = matches!(opcode, LLVMOpcode::LLVMPHI | LLVMOpcode::LLVMAlloca);
            if stays || !LLVMIsATerminatorInst(inst).is_null() {
                return None;
            }
            let is_constant = |v: LLVMValueRef| !LLVMIsAConstant(v).is_null();
            let count = LLVMGetNumOperands(inst) as u32;
            let moved: Vec<u32> = (0..count)
                .filter(|i| !is_constant(LLVMGetOperand(inst, *i)))
                .collect();
            let types: Vec<LLVMTypeRef> = moved
                .iter()
                .map(|i| LLVMTypeOf(LLVMGetOperand(inst, *i)))
                .collect();
            let special = |ty: &LLVMTypeRef| {
                use llvm_sys::LLVMTypeKind::*;
                matches!(
                    LLVMGetTypeKind(*ty),
                    LLVMMetadataTypeKind | LLVMTokenTypeKind | LLVMLabelTypeKind
                )
            };
            if types.iter().any(special) {
                return None;
            }
            let mut types = types;
            let result = LLVMTypeOf(inst);
            let ty = LLVMFunctionType(result, types.as_mut_ptr(), types.len() as u32, 0);
            let wanted = c_string(OUTLINED_PREFIX);
            let function = LLVMAddFunction(self.module, wanted.as_ptr(), ty);
            LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
            let block = LLVMAppendBasicBlockInContext(self.ctx, function, c"".as_ptr());
            let builder = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderAtEnd(builder, block);
            let copy = LLVMInstructionClone(inst);
            LLVMInsertIntoBuilder(builder, copy);
            LLVMInstructionSetDebugLoc(copy, null_mut());
            for (param, operand) in moved.iter().enumerate() {
                LLVMSetOperand(copy, *operand, LLVMGetParam(function, param as u32));
            }
            match LLVMGetTypeKind(result) {
                llvm_sys::LLVMTypeKind::LLVMVoidTypeKind => LLVMBuildRetVoid(builder),
                _ => LLVMBuildRet(builder, copy),
            };
            LLVMPositionBuilderBefore(builder, inst);
            let mut args: Vec<LLVMValueRef> =
                moved.iter().map(|i| LLVMGetOperand(inst, *i)).collect();
            let call = LLVMBuildCall2(
                builder,
                ty,
                function,
                args.as_mut_ptr(),
                args.len() as u32,
                c"".as_ptr(),
            );
            LLVMInstructionSetDebugLoc(call, LLVMInstructionGetDebugLoc(inst));
            LLVMDisposeBuilder(builder);
            if LLVMGetTypeKind(result) != llvm_sys::LLVMTypeKind::LLVMVoidTypeKind {
                LLVMReplaceAllUsesWith(inst, call);
            }
            LLVMInstructionEraseFromParent(inst);
            Some(name_of(function))
        }
    }
}

/// Prefix of the names of functions that hold an outlined inactive instruction.
const OUTLINED_PREFIX: &str = "gradus.inactive";

/// A load or store of an inactive variable.
#[derive(Clone, Copy, Debug)]
pub struct LoadOrStore(LLVMValueRef);

/// Returns the loads and stores of a variable. The error is an instruction through which the address
/// escapes.
unsafe fn accesses(global: LLVMValueRef) -> Result<Vec<LLVMValueRef>, LLVMValueRef> {
    let (mut pending, mut seen, mut found) = (vec![global], HashSet::new(), Vec::new());
    while let Some(value) = pending.pop() {
        for user in users_of(value) {
            if unsafe { LLVMIsAInstruction(user) }.is_null() {
                // An initialiser of another variable, such as a registration, holds the address without
                // reading the memory.
                let is_variable = !unsafe { LLVMIsAGlobalVariable(user) }.is_null();
                if !is_variable && seen.insert(user) {
                    pending.push(user);
                }
                continue;
            }
            match unsafe { LLVMGetInstructionOpcode(user) } {
                LLVMOpcode::LLVMLoad => found.push(user),
                LLVMOpcode::LLVMStore if unsafe { LLVMGetOperand(user, 0) } != value => {
                    found.push(user)
                }
                LLVMOpcode::LLVMGetElementPtr | LLVMOpcode::LLVMAddrSpaceCast => {
                    if seen.insert(user) {
                        pending.push(user);
                    }
                }
                LLVMOpcode::LLVMICmp => {}
                _ => return Err(user),
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the smallest source location of the uses of a symbol in code.
unsafe fn first_use_location(value: LLVMValueRef) -> Option<SourceSpan> {
    let mut found: Option<SourceSpan> = None;
    for user in users_of(value) {
        let is_code = !unsafe { LLVMIsAInstruction(user) }.is_null();
        let here = is_code.then(|| unsafe { source_location(user) }).flatten();
        found = [found, here].into_iter().flatten().min();
    }
    found
}

/// Collects marks.
struct Reader {
    /// The metadata kinds of the interface: name and number.
    kinds: Vec<(String, u32)>,
    found: Vec<Marked>,
    instructions: Vec<LLVMValueRef>,
}

impl Reader {
    fn function(&mut self, function: LLVMValueRef) {
        let name = unsafe { name_of(function) };
        self.metadata_of_global(function, Bearer::Function);
        let params = unsafe { LLVMCountParams(function) };
        let at = |index| unsafe {
            let mut list = vec![null_mut(); LLVMGetAttributeCountAtIndex(function, index) as usize];
            LLVMGetAttributesAtIndex(function, index, list.as_mut_ptr());
            list
        };
        let span = unsafe { function_location(function) };
        self.attributes(
            &at(LLVMAttributeFunctionIndex),
            &Bearer::Function(name),
            span.as_ref(),
        );
        for index in 0..=params {
            self.attributes(&at(index), &Bearer::Component, span.as_ref());
        }
        for inst in instructions_in(function) {
            self.instruction(inst);
        }
    }

    fn attributes(
        &mut self,
        list: &[LLVMAttributeRef],
        bearer: &Bearer,
        span: Option<&SourceSpan>,
    ) {
        for &attribute in list {
            unsafe {
                if LLVMIsStringAttribute(attribute) == 0 {
                    continue;
                }
                let mut length = 0;
                let key = LLVMGetStringAttributeKind(attribute, &mut length);
                let key = text_of(key, length as usize);
                let Some(word) = interface_keyword(&key) else {
                    continue;
                };
                let value = LLVMGetStringAttributeValue(attribute, &mut length);
                self.found.push(Marked {
                    form: MarkForm::Attribute,
                    word: word.to_string(),
                    text: text_of(value, length as usize),
                    operands: Vec::new(),
                    bearer: bearer.clone(),
                    span: span.cloned(),
                });
            }
        }
    }

    fn attributes_of_variable(&mut self, variable: LLVMValueRef) {
        let count = unsafe { gr_variable_attributes(variable, null_mut(), 0) };
        let mut list = vec![null_mut(); count];
        // SAFETY: the list has one entry for each attribute of the variable.
        unsafe { gr_variable_attributes(variable, list.as_mut_ptr(), count) };
        let bearer = Bearer::Variable(unsafe { name_of(variable) });
        self.attributes(&list, &bearer, None);
    }

    fn metadata_of_global(&mut self, global: LLVMValueRef, bearer: fn(String) -> Bearer) {
        if self.kinds.is_empty() {
            return;
        }
        unsafe {
            let mut count = 0;
            let entries = LLVMGlobalCopyAllMetadata(global, &mut count);
            for i in 0..count as u32 {
                let number = LLVMValueMetadataEntriesGetKind(entries, i);
                let node = LLVMValueMetadataEntriesGetMetadata(entries, i);
                let Some((word, _)) = self.kinds.iter().find(|(_, kind)| *kind == number) else {
                    continue;
                };
                let ctx = LLVMGetModuleContext(LLVMGetGlobalParent(global));
                self.found.push(Marked {
                    form: MarkForm::Metadata,
                    word: word.clone(),
                    text: String::new(),
                    operands: operands(LLVMMetadataAsValue(ctx, node)),
                    bearer: bearer(name_of(global)),
                    span: None,
                });
            }
            LLVMDisposeValueMetadataEntries(entries);
        }
    }

    fn instruction(&mut self, inst: LLVMValueRef) {
        let before = self.found.len();
        let bearer = Bearer::Instruction(self.instructions.len());
        unsafe {
            if LLVMHasMetadata(inst) != 0 {
                for (word, kind) in self.kinds.clone() {
                    let node = LLVMGetMetadata(inst, kind);
                    if !node.is_null() {
                        self.found.push(Marked {
                            form: MarkForm::Metadata,
                            word,
                            text: String::new(),
                            operands: operands(node),
                            bearer: bearer.clone(),
                            span: source_location(inst),
                        });
                    }
                }
            }
            if is_call(inst) {
                self.call(inst, &bearer);
            }
        }
        if self.found[before..]
            .iter()
            .any(|mark| mark.bearer == bearer)
        {
            self.instructions.push(inst);
        }
    }

    unsafe fn call(&mut self, call: LLVMValueRef, bearer: &Bearer) {
        let at = |index: LLVMAttributeIndex| unsafe {
            let mut list = vec![null_mut(); LLVMGetCallSiteAttributeCount(call, index) as usize];
            LLVMGetCallSiteAttributes(call, index, list.as_mut_ptr());
            list
        };
        let span = unsafe { source_location(call) };
        self.attributes(&at(LLVMAttributeFunctionIndex), bearer, span.as_ref());
        let count = unsafe { LLVMGetNumArgOperands(call) };
        for index in 0..=count {
            self.attributes(&at(index), &Bearer::Component, span.as_ref());
        }
        unsafe {
            let callee = LLVMGetCalledValue(call);
            if LLVMGetValueKind(callee) != LLVMValueKind::LLVMFunctionValueKind {
                return;
            }
            let name = name_of(callee);
            let is_annotation = [
                "llvm.var.annotation",
                "llvm.ptr.annotation",
                "llvm.annotation",
            ];
            if !is_annotation.iter().any(|stem| name.starts_with(stem)) {
                return;
            }
            let InitCell::Text(text) = read_cell(LLVMGetOperand(call, 1)) else {
                // Not an error: the text is not constant, so the annotation is none of the interface's.
                return;
            };
            if let Some(rest) = interface_keyword(&text) {
                let (word, value) = rest.split_once('=').unwrap_or((rest, ""));
                self.found.push(Marked {
                    form: MarkForm::Annotation,
                    word: word.to_string(),
                    text: value.to_string(),
                    operands: Vec::new(),
                    bearer: Bearer::Component,
                    span: annotation_call_location(call).or_else(|| source_location(call)),
                });
            }
        }
    }
}

/// Returns the file and line operands of an annotation.
unsafe fn annotation_call_location(call: LLVMValueRef) -> Option<SourceSpan> {
    let (file, line) = unsafe {
        (
            read_cell(LLVMGetOperand(call, 2)),
            read_cell(LLVMGetOperand(call, 3)),
        )
    };
    annotation_location(&file, &line)
}

/// Returns the source location in the operands of an annotation.
pub fn annotation_location(file: &InitCell, line: &InitCell) -> Option<SourceSpan> {
    match (file, line) {
        (InitCell::Text(file), InitCell::Number(line)) => Some(SourceSpan {
            file: file.clone(),
            line: u32::try_from(*line).ok()?,
            column: 0,
            called_at: None,
        }),
        _ => None,
    }
}

/// Returns the source location of a function.
unsafe fn function_location(function: LLVMValueRef) -> Option<SourceSpan> {
    unsafe {
        let program = LLVMGetSubprogram(function);
        let file = match program.is_null() {
            true => return None,
            false => LLVMDIScopeGetFile(program),
        };
        (!file.is_null()).then(|| SourceSpan {
            file: path_of(file),
            line: LLVMDISubprogramGetLine(program),
            column: 0,
            called_at: None,
        })
    }
}

/// Returns the operands of a metadata node that is wrapped as a value.
unsafe fn operands(node: LLVMValueRef) -> Vec<InitCell> {
    unsafe {
        let mut list = vec![null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
        LLVMGetMDNodeOperands(node, list.as_mut_ptr());
        let known = list
            .into_iter()
            .filter(|value: &LLVMValueRef| !value.is_null());
        known.map(|value| read_cell(value)).collect()
    }
}
