//! Attributes of functions, results and parameters, by LLVM's names.

use crate::TypeId;

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attr {
    /// LLVM's name (`noalias`, `memory` …) or the key of a string attribute.
    pub name: String,
    /// Its payload.
    pub value: AttrValue,
}

/// The attribute of a parameter that points to numbers of a type, by the program's debug information. It
/// says what memory holds where nothing else does, and is none of LLVM's: it does not go back there.
pub const POINTEE: &str = "gradus-pointee";

/// The value of `memory` that allows to read whatever there is: two bits for each kind of memory, the lower one for
/// reading.
const READS: u64 = 0x55;

/// What an attribute carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttrValue {
    /// Nothing: it is there or not.
    Flag,
    /// A number, in LLVM's encoding.
    Int(u64),
    /// The value of a string attribute.
    Text(String),
    /// A type (`sret`, `byval` …).
    Type(TypeId),
    /// What only the host understands (`range`, `initializes` …), by its number in the host's table.
    Host(u32),
}

/// The attributes of a function or of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttrSet {
    /// Of the function itself.
    pub function: Vec<Attr>,
    /// Of the result.
    pub result: Vec<Attr>,
    /// Of each parameter; may be shorter than the parameter list.
    pub params: Vec<Vec<Attr>>,
}

impl AttrSet {
    /// The attributes of a function that depends on its arguments' values alone, and always returns;
    /// one that is `speculatable` may be called where it was not.
    pub fn of_pure(speculatable: bool) -> Self {
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
    /// These attributes of a call, which at most reads, and always returns.
    #[must_use]
    pub fn reading(mut self) -> Self {
        let allowed = match self.function("memory") {
            Some(AttrValue::Int(bits)) => bits & READS,
            _ => READS,
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
    /// Whether this says that what is called at most reads, and always returns.
    pub fn only_reads(&self) -> bool {
        let is_there = |name: &str| self.function(name).is_some();
        let reads =
            matches!(self.function("memory"), Some(AttrValue::Int(bits)) if bits & !READS == 0);
        reads && is_there("nounwind") && is_there("willreturn") && !is_there("convergent")
    }
    /// The value of function attribute `name`.
    pub fn function(&self, name: &str) -> Option<&AttrValue> {
        find(&self.function, name)
    }
    /// The value of result attribute `name`.
    pub fn result(&self, name: &str) -> Option<&AttrValue> {
        find(&self.result, name)
    }
    /// The value of attribute `name` of parameter `index`.
    pub fn param(&self, index: usize, name: &str) -> Option<&AttrValue> {
        self.params.get(index).and_then(|list| find(list, name))
    }
}

fn find<'a>(list: &'a [Attr], name: &str) -> Option<&'a AttrValue> {
    list.iter().find(|a| a.name == name).map(|a| &a.value)
}
