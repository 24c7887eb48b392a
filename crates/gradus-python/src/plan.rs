//! Plans of calls: the Python parameters, the arguments of a uniform entry, and the outputs.
//!
//! The Python package builds a plan once per function and operation, as dictionaries; the fields here have the same
//! names. Indices are positions in the plan's lists.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The type of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    /// IEEE binary64.
    F64,
    /// IEEE binary32.
    F32,
    /// A signed integer of so many bytes.
    Signed(u8),
    /// An unsigned integer of so many bytes.
    Unsigned(u8),
    /// A boolean of one byte.
    Bool,
}

impl Dtype {
    /// Returns the size in bytes.
    pub(crate) fn size_bytes(self) -> usize {
        match self {
            Dtype::F64 => 8,
            Dtype::F32 => 4,
            Dtype::Signed(bytes) | Dtype::Unsigned(bytes) => usize::from(bytes),
            Dtype::Bool => 1,
        }
    }

    /// Returns NumPy's name.
    pub(crate) fn name(self) -> String {
        match self {
            Dtype::F64 => "float64".into(),
            Dtype::F32 => "float32".into(),
            Dtype::Signed(bytes) => format!("int{}", 8 * u32::from(bytes)),
            Dtype::Unsigned(bytes) => format!("uint{}", 8 * u32::from(bytes)),
            Dtype::Bool => "bool".into(),
        }
    }

    /// Returns NumPy's letter for the kind of number.
    pub(crate) fn kind(self) -> u8 {
        match self {
            Dtype::F64 | Dtype::F32 => b'f',
            Dtype::Signed(_) => b'i',
            Dtype::Unsigned(_) => b'u',
            Dtype::Bool => b'b',
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Dtype {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text: String = object.extract()?;
        Ok(match text.as_str() {
            "f8" => Dtype::F64,
            "f4" => Dtype::F32,
            "i1" | "i2" | "i4" | "i8" => Dtype::Signed(text.as_bytes()[1] - b'0'),
            "u1" | "u2" | "u4" | "u8" => Dtype::Unsigned(text.as_bytes()[1] - b'0'),
            "b1" => Dtype::Bool,
            _ => return Err(unknown("type", &text)),
        })
    }
}

fn unknown(what: &str, text: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} `{text}` in a plan"))
}

/// An operation of a length's expression, in postfix order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LengthOp {
    /// Pushes a constant.
    Const(i64),
    /// Pushes a variable.
    Variable(usize),
    /// Replaces two numbers by their sum.
    Add,
    /// Replaces two numbers by their difference.
    Sub,
    /// Replaces two numbers by their product.
    Mul,
}

impl<'a, 'py> FromPyObject<'a, 'py> for LengthOp {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (op, number): (String, i64) = object.extract()?;
        Ok(match op.as_str() {
            "constant" => LengthOp::Const(number),
            "variable" => LengthOp::Variable(number as usize),
            "+" => LengthOp::Add,
            "-" => LengthOp::Sub,
            "*" => LengthOp::Mul,
            _ => return Err(unknown("operation", &op)),
        })
    }
}

/// The length of a dimension.
pub(crate) type Length = Vec<LengthOp>;

/// Computes a length; `None` if the expression overflows.
pub(crate) fn length(ops: &[LengthOp], variables: &[i64]) -> Option<i64> {
    match *ops {
        [LengthOp::Variable(index)] => return Some(variables[index]),
        [LengthOp::Const(number)] => return Some(number),
        // Other expressions need the stack.
        _ => {}
    }
    let mut stack = [0i64; LENGTH_DEPTH_MAX];
    let mut top = 0;
    for op in ops {
        let pushed = match *op {
            LengthOp::Const(number) => Some(number),
            LengthOp::Variable(index) => Some(variables[index]),
            LengthOp::Add | LengthOp::Sub | LengthOp::Mul => None,
        };
        if let Some(number) = pushed {
            *stack.get_mut(top)? = number;
            top += 1;
            continue;
        }
        let (left, right) = (stack[top.checked_sub(2)?], stack[top - 1]);
        top -= 1;
        stack[top - 1] = match op {
            LengthOp::Add => left.checked_add(right),
            LengthOp::Sub => left.checked_sub(right),
            _ => left.checked_mul(right),
        }?;
    }
    (top == 1).then_some(stack[0])
}

/// The greatest number of pending operands of a length's expression.
const LENGTH_DEPTH_MAX: usize = 16;

/// A Python parameter.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Param {
    /// The name.
    pub(crate) name: String,
    /// True for an array, false for a number.
    pub(crate) is_array: bool,
    /// The type of the number or of the elements.
    pub(crate) dtype: Dtype,
    /// The lengths of an array's dimensions; `None` if the entry accepts any shape.
    pub(crate) dims: Option<Vec<Length>>,
    /// The parameter with an equal shape.
    pub(crate) like: Option<usize>,
    /// True if the entry writes into the array.
    pub(crate) is_written: bool,
    /// True if the first index of an array runs fastest.
    pub(crate) is_fortran: bool,
}

/// An integer that lengths refer to.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Variable {
    /// The name.
    pub(crate) name: String,
    /// The type of the argument.
    pub(crate) dtype: Dtype,
    /// The parameter that gives the value; `None` for a value from an array's length or a keyword.
    pub(crate) param: Option<usize>,
}

/// Memory that a call allocates.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Buffer {
    /// The name, for messages on `out`.
    pub(crate) name: String,
    /// The type of the elements.
    pub(crate) dtype: Dtype,
    /// The parameter with an equal shape.
    pub(crate) like: Option<usize>,
    /// The lengths, if no parameter has an equal shape.
    pub(crate) dims: Vec<Length>,
    /// True if the buffer begins with the values of `like`, else with zeros.
    pub(crate) is_copy: bool,
    /// True for a single number.
    pub(crate) is_scalar: bool,
    /// True if the first index of an array runs fastest.
    pub(crate) is_fortran: bool,
}

/// The origin of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// A parameter.
    Param(usize),
    /// A variable.
    Variable(usize),
    /// A buffer.
    Buffer(usize),
    /// A constant.
    Constant(f64),
}

/// The way an argument is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// The number itself.
    Value,
    /// The address of an array, or of a number.
    Address,
    /// The address and the lengths of an array.
    Descriptor,
}

/// An argument of the entry.
pub(crate) struct Slot {
    pub(crate) source: Source,
    pub(crate) passing: Passing,
    /// The type of a number.
    pub(crate) dtype: Dtype,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Slot {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (source, number, passing, dtype): (String, f64, String, Dtype) = object.extract()?;
        let source = match source.as_str() {
            "param" => Source::Param(number as usize),
            "variable" => Source::Variable(number as usize),
            "buffer" => Source::Buffer(number as usize),
            "constant" => Source::Constant(number),
            _ => return Err(unknown("source", &source)),
        };
        let passing = match passing.as_str() {
            "value" => Passing::Value,
            "pointer" => Passing::Address,
            "descriptor" => Passing::Descriptor,
            _ => return Err(unknown("passing", &passing)),
        };
        Ok(Slot {
            source,
            passing,
            dtype,
        })
    }
}

/// An output of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A buffer.
    Buffer(usize),
    /// The number at an offset in bytes in the entry's result.
    Result(usize, Dtype),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Output {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (kind, number, dtype): (String, usize, Dtype) = object.extract()?;
        match kind.as_str() {
            "buffer" => Ok(Output::Buffer(number)),
            "result" => Ok(Output::Result(number, dtype)),
            _ => Err(unknown("output", &kind)),
        }
    }
}

/// A call.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Plan {
    /// The name, for messages: `energy.grad`.
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) outputs: Vec<Output>,
    /// True if the call returns a tuple, also of one output.
    pub(crate) is_tuple: bool,
    /// The size of the entry's result in bytes.
    pub(crate) result_bytes: usize,
}

impl Plan {
    /// Checks the indices, so that a call needs no checks.
    pub(crate) fn check(&self) -> PyResult<()> {
        let lengths = || {
            let params = self.params.iter().filter_map(|p| p.dims.as_ref());
            params.chain(self.buffers.iter().map(|b| &b.dims)).flatten()
        };
        let variable = |op: &LengthOp| match op {
            LengthOp::Variable(index) => *index < self.variables.len(),
            LengthOp::Const(_) | LengthOp::Add | LengthOp::Sub | LengthOp::Mul => true,
        };
        let param = |index: Option<usize>| index.is_none_or(|index| index < self.params.len());
        let array = |index: Option<usize>| {
            index.is_none_or(|index| self.params.get(index).is_some_and(|p| p.is_array))
        };
        let source = |slot: &Slot| match slot.source {
            Source::Param(index) => index < self.params.len(),
            Source::Variable(index) => index < self.variables.len(),
            Source::Buffer(index) => index < self.buffers.len(),
            Source::Constant(_) => true,
        };
        let output = |output: &Output| match *output {
            Output::Buffer(index) => index < self.buffers.len(),
            Output::Result(offset, dtype) => offset + dtype.size_bytes() <= self.result_bytes,
        };
        let earlier = |(at, p): (usize, &Param)| p.like.is_none_or(|like| like < at);
        let is_whole = lengths().flatten().all(variable)
            && self.params.iter().enumerate().all(earlier)
            && self.params.iter().all(|p| array(p.like))
            && self.variables.iter().all(|v| param(v.param))
            && self.buffers.iter().all(|b| {
                if b.is_scalar {
                    param(b.like)
                } else {
                    array(b.like)
                }
            })
            && self.slots.iter().all(source)
            && self.outputs.iter().all(output);
        match is_whole {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!(
                "the plan of {} refers to a missing part",
                self.name
            ))),
        }
    }
}
