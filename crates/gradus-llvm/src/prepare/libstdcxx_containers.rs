//! Replaces libstdc++'s out-of-line list and tree functions by IR that differentiation handles.
//!
//! `std::list`, `std::map`, `std::set` and related containers are templates, except for operations on nodes
//! independent of the element type: the library links nodes, inserts, erases and finds the successor.
//! Before differentiation, replacement functions on the same node layout are called instead:
//! `nodes/links.ll`, and `nodes/tree.ll` with `nodes/side.ll` once per side. Lists are circular with a
//! sentinel (Knuth, TAOCP 1, 2.2.5). Trees are red-black trees with insertion and deletion as in Cormen,
//! Leiserson, Rivest and Stein, Introduction to Algorithms, 13.3 and 13.4. Departures: null replaces the
//! leaf sentinel, and a header above the root points to the first and last node. Programs observe the order
//! of nodes only, not the balance of the tree.
//!
//! Hashed containers are entirely template code, except for the library's rehash policy. Its results are
//! integers that decide the order of elements, so these calls stay.

use crate::host::ffi::c_string;
use crate::host::module::Host;
use gradus_ir::Diagnostic;
use llvm_sys::LLVMLinkage::LLVMInternalLinkage;
use llvm_sys::core::*;
use llvm_sys::target::{LLVMGetModuleDataLayout, LLVMPointerSize};

/// Pairs of library function and replacement.
type Replacements = &'static [(&'static str, &'static str)];

// table
const LINKS: Replacements = &[
    (
        "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
        "__gr_links_hook",
    ),
    (
        "_ZNSt8__detail15_List_node_base9_M_unhookEv",
        "__gr_links_unhook",
    ),
    (
        "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
        "__gr_links_transfer",
    ),
    (
        "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
        "__gr_links_swap",
    ),
    (
        "_ZNSt8__detail15_List_node_base10_M_reverseEv",
        "__gr_links_reverse",
    ),
];

// table
const TREE: Replacements = &[
    (
        "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
        "__gr_tree_after",
    ),
    (
        "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
        "__gr_tree_after",
    ),
    (
        "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
        "__gr_tree_before",
    ),
    (
        "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
        "__gr_tree_before",
    ),
    (
        "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
        "__gr_tree_insert",
    ),
    (
        "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
        "__gr_tree_erase",
    ),
];

impl Host {
    /// Replaces the library's list and tree functions.
    ///
    /// # Errors
    /// LLVM's message if the replacements cannot be parsed or linked.
    pub fn write_out_nodes(&mut self) -> Result<(), Diagnostic> {
        self.replace_functions(LINKS, "__gr_links", || {
            include_str!("libstdcxx/links.ll").into()
        })?;
        self.replace_functions(TREE, "__gr_tree", || {
            let tree = include_str!("libstdcxx/tree.ll");
            format!("{tree}{}{}", side(true), side(false))
        })
    }

    fn replace_functions(
        &mut self,
        pairs: Replacements,
        name: &str,
        text: impl FnOnce() -> String,
    ) -> Result<(), Diagnostic> {
        // The replacements assume the node layout of 64-bit targets.
        let wide = unsafe { LLVMPointerSize(LLVMGetModuleDataLayout(self.module)) } == 8;
        let mut called = pairs.to_vec();
        called.retain(|(theirs, _)| wide && self.is_used_declaration(theirs));
        if called.is_empty() {
            return Ok(());
        }
        let module = self.read_text(text().as_bytes(), name)?;
        unsafe {
            LLVMSetDataLayout(module, LLVMGetDataLayoutStr(self.module));
            LLVMSetTarget(module, LLVMGetTarget(self.module));
        }
        self.link_module(module, name)?;
        for (_, ours) in pairs {
            if let Some(function) = self.function(ours) {
                // The functions become internal only after linking: the linker drops internal functions
                // without uses.
                unsafe { LLVMSetLinkage(function, LLVMInternalLinkage) };
            }
        }
        for (theirs, ours) in called {
            if let (Some(theirs), Some(ours)) = (self.function(theirs), self.function(ours)) {
                unsafe { LLVMReplaceAllUsesWith(theirs, ours) };
            }
        }
        Ok(())
    }

    /// Returns whether a function is used and declared only.
    fn is_used_declaration(&self, name: &str) -> bool {
        let name = c_string(name);
        unsafe {
            let function = LLVMGetNamedFunction(self.module, name.as_ptr());
            !function.is_null()
                && LLVMIsDeclaration(function) != 0
                && !LLVMGetFirstUse(function).is_null()
        }
    }
}

/// Returns the tree functions for one side.
fn side(left: bool) -> String {
    let (side, other, near, far) = match left {
        true => ("left", "right", "16", "24"),
        false => ("right", "left", "24", "16"),
    };
    let lines = include_str!("libstdcxx/side.ll").lines();
    let code = lines.filter(|line| !line.starts_with(';'));
    let code: String = code.map(|line| format!("{line}\n")).collect();
    code.replace("SIDE", side)
        .replace("OTHER", other)
        .replace("NEAR", near)
        .replace("FAR", far)
}
