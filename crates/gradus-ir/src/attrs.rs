//! LLVM attributes of functions, results and parameters.

use crate::TypeId;

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attr {
    /// LLVM's name (`noalias`, `memory` …) or the key of a string attribute.
    pub name: String,
    /// The attribute's payload.
    pub value: AttrValue,
}

/// Parameter attribute: the pointee's numeric type according to debug information. Type analysis reads the
/// attribute if no other evidence exists. LLVM has no such attribute, and export drops it.
pub const POINTEE_ATTR: &str = "gradus-pointee";

/// The read bits of LLVM's `memory` attribute. Each kind of memory has two bits; the lower bit allows reads.
const MEMORY_READ_BITS: u64 = 0x55;

/// The payload of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttrValue {
    /// No payload (enum attributes).
    Flag,
    /// A number, in LLVM's encoding.
    Int(u64),
    /// The value of a string attribute.
    Text(String),
    /// A type (`sret`, `byval` …).
    Type(TypeId),
    /// A payload opaque to Gradus (`range`, `initializes` …): index into the host's table.
    Host(u32),
}

/// The attributes of a function or of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttrSet {
    /// Function attributes.
    pub function: Vec<Attr>,
    /// Result attributes.
    pub result: Vec<Attr>,
    /// Attributes of each parameter; may be shorter than the parameter list.
    pub params: Vec<Vec<Attr>>,
}

impl AttrSet {
    /// Returns the attributes of a function that depends only on argument values and always returns.
    /// `speculatable` allows calls on paths without a call in the source.
    pub fn pure_function(speculatable: bool) -> Self {
        let flag = |name: &str| Attr {
            name: name.into(),
            value: AttrValue::Flag,
        };
        let names = ["nocallback", "nofree", "nosync", "nounwind", "willreturn"];
        let mut function: Vec<Attr> = names.into_iter().map(flag).collect();
        function.push(Attr {
            name: "memory".into(),
            value: AttrValue::Int(0),
        });
        if speculatable {
            function.push(flag("speculatable"));
        }
        AttrSet {
            function,
            ..AttrSet::default()
        }
    }
    /// Restricts the attributes to a call with at most reads and a guaranteed return.
    #[must_use]
    pub fn restricted_to_reads(mut self) -> Self {
        let allowed = match self.function("memory") {
            Some(AttrValue::Int(bits)) => bits & MEMORY_READ_BITS,
            _ => MEMORY_READ_BITS,
        };
        let flags = ["nounwind", "willreturn"].map(|name| (name, AttrValue::Flag));
        for (name, value) in flags
            .into_iter()
            .chain([("memory", AttrValue::Int(allowed))])
        {
            self.function.retain(|attr| attr.name != name);
            self.function.push(Attr {
                name: name.into(),
                value,
            });
        }
        self
    }
    /// Returns whether the callee at most reads memory and always returns, according to the attributes.
    pub fn is_read_only(&self) -> bool {
        let is_there = |name: &str| self.function(name).is_some();
        let reads = matches!(self.function("memory"), Some(AttrValue::Int(bits)) if bits & !MEMORY_READ_BITS == 0);
        reads && is_there("nounwind") && is_there("willreturn") && !is_there("convergent")
    }
    /// Returns the value of function attribute `name`.
    pub fn function(&self, name: &str) -> Option<&AttrValue> {
        find(&self.function, name)
    }
    /// Returns the value of result attribute `name`.
    pub fn result(&self, name: &str) -> Option<&AttrValue> {
        find(&self.result, name)
    }
    /// Returns the value of attribute `name` of parameter `index`.
    pub fn param(&self, index: usize, name: &str) -> Option<&AttrValue> {
        self.params.get(index).and_then(|list| find(list, name))
    }
}

fn find<'a>(list: &'a [Attr], name: &str) -> Option<&'a AttrValue> {
    list.iter().find(|a| a.name == name).map(|a| &a.value)
}
