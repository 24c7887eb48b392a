//! Calls of uniform entries: checks the parameters, binds lengths, allocates outputs, and runs the entry.
//!
//! # Invariants
//! - Every address that the entry receives belongs to an array that the call keeps alive, of the length that the plan
//!   states, or to the frame of the call.
//! - Outputs overlap no parameter.

use crate::arrays::{self, Memory, Wanted};
use crate::library::{Entry, Library};
use crate::plan::{Dtype, LengthOp, Output, Param, Passing, Plan, Slot, Source, length};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls on arrays of more bytes release the interpreter's lock.
const LOCKED_BYTES_MAX: usize = 2048;

/// A function, or an operation on its derivatives.
#[pyclass(frozen, subclass, module = "gradus._native")]
pub(crate) struct Caller {
    entry: Entry,
    plan: Plan,
    /// The number of arguments with a descriptor.
    descriptors: usize,
    /// Runs before each call with the call's arguments, until one call succeeds.
    first: Option<Py<PyAny>>,
    has_succeeded: AtomicBool,
}

/// A list without memory of its own for the usual number of arguments.
type Few<T> = SmallVec<[T; 8]>;

/// An array as the entry of a Fortran descriptor receives the array.
#[repr(C)]
struct ArrayArgument {
    data: *mut c_void,
    extents: [usize; arrays::RANK_MAX],
}

/// Numbers behind pointers, and outputs, of one call.
struct Frame<'py> {
    /// The parameters.
    given: Few<Bound<'py, PyAny>>,
    /// The arrays of the parameters.
    memories: Few<Memory>,
    /// The numbers of the parameters, as bits of their types.
    numbers: Few<u64>,
    variables: Few<i64>,
    /// The arrays of the buffers; `None` for a number.
    buffers: Few<Option<(Bound<'py, PyAny>, Memory)>>,
    /// The numbers of the buffers.
    buffer_numbers: Few<u64>,
    /// A parameter that is an array of another library.
    foreign: Option<Bound<'py, PyAny>>,
}

#[pymethods]
impl Caller {
    /// Prepares calls of the entry `symbol` of a library.
    #[new]
    #[pyo3(signature = (library, symbol, plan, first = None))]
    fn new(
        library: &Bound<'_, Library>,
        symbol: &str,
        plan: Plan,
        first: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        plan.check()?;
        let is_descriptor = |slot: &&Slot| slot.passing == Passing::Descriptor;
        Ok(Caller {
            entry: library.get().entry(symbol)?,
            descriptors: plan.slots.iter().filter(is_descriptor).count(),
            plan,
            first,
            has_succeeded: AtomicBool::new(false),
        })
    }

    /// Calls the entry. Keywords name parameters, lengths and `out`.
    #[pyo3(signature = (*args, out = None, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut frame = Frame {
            given: Few::new(),
            memories: Few::new(),
            numbers: Few::new(),
            variables: Few::new(),
            buffers: Few::new(),
            buffer_numbers: Few::new(),
            foreign: None,
        };
        let lengths = self.take_words(args, kwargs, &mut frame)?;
        self.read_parameters(py, &mut frame)?;
        self.bind_lengths(&mut frame, lengths)?;
        self.check_shapes(&frame)?;
        if let Some(first) = &self.first
            && !self.has_succeeded.load(Ordering::Relaxed)
        {
            first.call1(py, (args, kwargs))?;
            self.has_succeeded.store(true, Ordering::Relaxed);
        }
        self.allocate(py, &mut frame, out)?;
        let result = self.run(py, &mut frame);
        self.outputs(py, &frame, &result)
    }

    /// The name of the operation, as in messages.
    #[getter]
    fn operation(&self) -> &str {
        &self.plan.name
    }
}

impl Caller {
    fn type_error(&self, text: String) -> PyErr {
        PyTypeError::new_err(format!("{}: {text}", self.plan.name))
    }

    fn value_error(&self, text: String) -> PyErr {
        PyValueError::new_err(format!("{}: {text}", self.plan.name))
    }

    /// Assigns positional arguments and keywords to parameters. Returns the lengths given by keywords, by variable.
    fn take_words<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        frame: &mut Frame<'py>,
    ) -> PyResult<Few<(usize, i64)>> {
        let params = &self.plan.params;
        frame.given.extend(args.iter());
        let mut lengths = Few::new();
        if let Some(kwargs) = kwargs {
            let mut named: Few<Option<Bound<'py, PyAny>>> = smallvec![None; params.len()];
            for (key, value) in kwargs.iter() {
                let key = key.cast::<PyString>()?.to_str()?;
                let variable = self.plan.variables.iter();
                let mut variable = variable.enumerate().filter(|(_, v)| v.param.is_none());
                if let Some(at) = params.iter().position(|p| p.name == key) {
                    if at < frame.given.len() {
                        return Err(self.type_error(format!("`{key}` is given twice")));
                    }
                    named[at] = Some(value);
                } else if let Some((at, _)) = variable.find(|(_, v)| v.name == key) {
                    lengths.push((at, self.integer(key, &value)?));
                } else {
                    return Err(
                        self.type_error(format!("no argument is named `{key}`; {}", self.usage()))
                    );
                }
            }
            let rest = named.into_iter().skip(frame.given.len());
            frame.given.extend(rest.map_while(|value| value));
        }
        if frame.given.len() != params.len() {
            let (found, wanted) = (frame.given.len(), params.len());
            return Err(self.type_error(format!(
                "{found} of {wanted} arguments are given; {}",
                self.usage()
            )));
        }
        Ok(lengths)
    }

    /// Returns the form of a call, for messages.
    fn usage(&self) -> String {
        let names: Vec<&str> = self.plan.params.iter().map(|p| p.name.as_str()).collect();
        let lengths = self.plan.variables.iter().filter(|v| v.param.is_none());
        let lengths: Vec<String> = lengths.map(|v| format!("`{}`", v.name)).collect();
        let note = match lengths.is_empty() {
            true => String::new(),
            false => format!(" ({} from the arrays, or by keyword)", lengths.join(", ")),
        };
        format!("call {}({}){note}", self.plan.name, names.join(", "))
    }

    fn integer(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
        value
            .extract()
            .map_err(|_| self.type_error(format!("`{name}` is not an integer of 64 bits: {value}")))
    }

    /// Reads arrays and numbers from the parameters.
    fn read_parameters<'py>(&self, py: Python<'py>, frame: &mut Frame<'py>) -> PyResult<()> {
        for (at, param) in self.plan.params.iter().enumerate() {
            let (mut memory, mut number) = (Memory::NONE, 0);
            if param.is_array {
                memory = self.array(py, at, param, frame)?;
            } else {
                number = self.number(param, &frame.given[at])?;
            }
            frame.memories.push(memory);
            frame.numbers.push(number);
        }
        Ok(())
    }

    /// Returns the memory of an array, which NumPy or another library made.
    fn array<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        param: &Param,
        frame: &mut Frame<'py>,
    ) -> PyResult<Memory> {
        let wanted = Wanted {
            function: &self.plan.name,
            name: &param.name,
            dtype: param.dtype,
            is_written: param.is_written,
            is_fortran: param.is_fortran,
        };
        if let Some(memory) = arrays::memory(&frame.given[at], &wanted)? {
            return Ok(memory);
        }
        let object = frame.given[at].clone();
        if !object.hasattr("__dlpack__")? {
            let (name, found) = (&param.name, object.get_type().name()?);
            return Err(self.type_error(format!(
                "`{name}` is not an array but a {found}; pass numpy.asarray({name}, \"{}\")",
                param.dtype.name()
            )));
        }
        let array = py
            .import("numpy")?
            .call_method1("from_dlpack", (&object,))?;
        let memory = arrays::memory(&array, &wanted)?;
        let memory = memory.ok_or_else(|| {
            self.type_error(format!("`{}` is not an array for NumPy", param.name))
        })?;
        frame.given[at] = array;
        frame.foreign = Some(object);
        Ok(memory)
    }

    /// Returns the bits of a number.
    fn number(&self, param: &Param, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let name = &param.name;
        match param.dtype {
            Dtype::F64 | Dtype::F32 => {
                let number: f64 = value.extract().map_err(|_| {
                    let found = value.get_type();
                    self.type_error(format!("`{name}` is not a number but a {found}"))
                })?;
                Ok(float_bits(number, param.dtype))
            }
            Dtype::Bool => value
                .extract::<bool>()
                .map(u64::from)
                .map_err(|_| self.type_error(format!("`{name}` is not a bool: {value}"))),
            Dtype::Signed(_) | Dtype::Unsigned(_) => {
                let number = self.integer(name, value)?;
                self.integer_bits(name, number, param.dtype)
            }
        }
    }

    /// Returns the bits of an integer of a type.
    fn integer_bits(&self, name: &str, number: i64, dtype: Dtype) -> PyResult<u64> {
        let bits = 8 * dtype.size_bytes() as u32;
        let fits = match dtype {
            Dtype::Unsigned(8) => number >= 0,
            Dtype::Unsigned(_) => number >= 0 && number >> bits == 0,
            _ => bits == 64 || (number >> (bits - 1) == 0 || number >> (bits - 1) == -1),
        };
        match fits {
            true => Ok(number as u64),
            false => Err(PyOverflowError::new_err(format!(
                "{}: {number} does not fit into `{name}` of type {}",
                self.plan.name,
                dtype.name()
            ))),
        }
    }

    /// Gives each variable its value: a parameter, a keyword, or the length of an array.
    fn bind_lengths(&self, frame: &mut Frame<'_>, told: Few<(usize, i64)>) -> PyResult<()> {
        let variables = &self.plan.variables;
        let mut bound: Few<Option<i64>> = smallvec![None; variables.len()];
        for (at, number) in told {
            bound[at] = Some(number);
        }
        for (slot, variable) in bound.iter_mut().zip(variables) {
            if let Some(param) = variable.param {
                *slot = Some(self.integer(&variable.name, &frame.given[param])?);
            }
        }
        for (param, memory) in self.plan.params.iter().zip(&frame.memories) {
            let dims = param.dims.iter().flatten();
            for (dim, found) in dims.zip(memory.shape()) {
                if let [LengthOp::Variable(at)] = dim[..] {
                    bound[at].get_or_insert(*found as i64);
                }
            }
        }
        for (value, variable) in bound.into_iter().zip(variables) {
            let name = &variable.name;
            let value = value
                .ok_or_else(|| self.type_error(format!("`{name}` is missing: pass {name}=…")))?;
            self.integer_bits(name, value, variable.dtype)?;
            frame.variables.push(value);
        }
        Ok(())
    }

    /// Compares the shapes of arrays with the plan's.
    fn check_shapes(&self, frame: &Frame<'_>) -> PyResult<()> {
        for (param, memory) in self.plan.params.iter().zip(&frame.memories) {
            if let Some(like) = param.like
                && memory.shape() != frame.memories[like].shape()
            {
                let other = &self.plan.params[like].name;
                let (found, wanted) = (memory.shape(), frame.memories[like].shape());
                return Err(self.value_error(format!(
                    "`{}` has shape {found:?}, but `{other}` has {wanted:?}",
                    param.name
                )));
            }
            let Some(dims) = &param.dims else {
                continue;
            };
            if dims.len() != memory.rank {
                return Err(self.value_error(format!(
                    "`{}` has {} dimensions, {} are expected",
                    param.name,
                    memory.rank,
                    dims.len()
                )));
            }
            for (axis, (dim, found)) in dims.iter().zip(memory.shape()).enumerate() {
                let wanted = length(dim, &frame.variables);
                if wanted != Some(*found as i64) {
                    return Err(self.wrong_length(param, axis, *found, wanted));
                }
            }
        }
        Ok(())
    }

    fn wrong_length(&self, param: &Param, axis: usize, found: usize, wanted: Option<i64>) -> PyErr {
        let dims = param.dims.as_ref();
        let names = dims.and_then(|dims| dims.get(axis)).into_iter().flatten();
        let names = names.filter_map(|op| match op {
            LengthOp::Variable(at) => Some(self.plan.variables[*at].name.as_str()),
            LengthOp::Const(_) | LengthOp::Add | LengthOp::Sub | LengthOp::Mul => None,
        });
        let names: Vec<&str> = names.collect();
        let reason = match names.is_empty() {
            true => String::new(),
            false => format!(
                " (from {}; f.signature(\"{}: […]\") states another length)",
                names.join(", "),
                param.name
            ),
        };
        let wanted = wanted.map_or("a number beyond 64 bits".to_string(), |n| n.to_string());
        self.value_error(format!(
            "`{}` has length {found} in dimension {axis}, but the function expects {wanted}{reason}",
            param.name
        ))
    }

    /// Allocates the buffers, or takes the arrays of `out`.
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        frame: &mut Frame<'py>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let mut given = self.given_outputs(frame, out)?;
        for (at, buffer) in self.plan.buffers.iter().enumerate() {
            let number = match (buffer.is_copy, buffer.like) {
                (true, Some(like)) => frame.numbers[like],
                _ => 0,
            };
            frame.buffer_numbers.push(number);
            if buffer.is_scalar {
                frame.buffers.push(None);
                continue;
            }
            let source = buffer.like.map(|like| frame.memories[like]);
            let made = match given.iter().position(|(index, ..)| *index == at) {
                Some(position) => {
                    let (_, array, memory) = given.swap_remove(position);
                    (array, memory)
                }
                None => {
                    let lengths = self.lengths(at, frame)?;
                    arrays::zeros(py, buffer.dtype, &lengths, buffer.is_fortran)?
                }
            };
            if let (true, Some(source)) = (buffer.is_copy, source) {
                // SAFETY: both arrays are contiguous, have equal shapes and types, and do not overlap.
                unsafe {
                    let to = made.1.data.cast::<u8>();
                    to.copy_from_nonoverlapping(source.data.cast(), source.bytes);
                }
            }
            frame.buffers.push(Some(made));
        }
        Ok(())
    }

    /// Returns the lengths of buffer `at`.
    fn lengths(&self, at: usize, frame: &Frame<'_>) -> PyResult<Few<usize>> {
        let buffer = &self.plan.buffers[at];
        if let Some(like) = buffer.like {
            return Ok(frame.memories[like].shape().into());
        }
        let lengths = buffer.dims.iter().map(|dim| {
            let found = length(dim, &frame.variables).and_then(|n| usize::try_from(n).ok());
            found
                .ok_or_else(|| self.value_error(format!("`{}` has a negative length", buffer.name)))
        });
        lengths.collect()
    }

    /// Checks the arrays of `out`, one per output array in order, and fills them with zeros.
    fn given_outputs<'py>(
        &self,
        frame: &Frame<'py>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<(usize, Bound<'py, PyAny>, Memory)>> {
        let Some(out) = out else {
            // Not an error: the call allocates all outputs.
            return Ok(Vec::new());
        };
        let outputs = self.plan.outputs.iter().filter_map(|output| match output {
            Output::Buffer(at) if !self.plan.buffers[*at].is_scalar => Some(*at),
            Output::Buffer(_) | Output::Result(..) => None,
        });
        let outputs: Few<usize> = outputs.collect();
        let arrays: Few<Bound<'py, PyAny>> = match out.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => smallvec![out.clone()],
        };
        if arrays.len() != outputs.len() {
            let (found, wanted) = (arrays.len(), outputs.len());
            return Err(self.type_error(format!(
                "`out` has {found} arrays, but the call has {wanted} output arrays"
            )));
        }
        let mut taken: Vec<(usize, Bound<'py, PyAny>, Memory)> = Vec::new();
        for (at, array) in outputs.into_iter().zip(arrays) {
            let buffer = &self.plan.buffers[at];
            let wanted = Wanted {
                function: &self.plan.name,
                name: "out",
                dtype: buffer.dtype,
                is_written: true,
                is_fortran: buffer.is_fortran,
            };
            let memory = arrays::memory(&array, &wanted)?;
            let memory =
                memory.ok_or_else(|| self.type_error("`out` is not a NumPy array".into()))?;
            let lengths = self.lengths(at, frame)?;
            if memory.shape() != &lengths[..] {
                return Err(self.value_error(format!(
                    "`out` has shape {:?}, but the output has {lengths:?}",
                    memory.shape()
                )));
            }
            let mut others = frame.memories.iter().chain(taken.iter().map(|(.., m)| m));
            if others.any(|other| memory.overlaps(other)) {
                return Err(self.value_error("`out` shares memory with another array".into()));
            }
            // SAFETY: the array is contiguous and writable, and has `bytes` bytes.
            unsafe { memory.data.cast::<u8>().write_bytes(0, memory.bytes) };
            taken.push((at, array, memory));
        }
        Ok(taken)
    }

    /// Runs the entry. Returns the words of its result.
    fn run(&self, py: Python<'_>, frame: &mut Frame<'_>) -> Few<u64> {
        let slots = &self.plan.slots;
        let mut values: SmallVec<[u64; 16]> = smallvec![0; slots.len()];
        let mut constants: SmallVec<[u64; 16]> = smallvec![0; slots.len()];
        let mut described: Vec<ArrayArgument> = Vec::with_capacity(self.descriptors);
        let mut result: Few<u64> = smallvec![0; self.plan.result_bytes.div_ceil(8)];
        // The lists do not grow from here on: their addresses stay.
        let (params, buffers) = (
            frame.numbers.as_mut_ptr(),
            frame.buffer_numbers.as_mut_ptr(),
        );
        let (values, constants) = (values.as_mut_ptr(), constants.as_mut_ptr());
        let (arrays, mut array_count) = (described.as_mut_ptr(), 0);
        let mut args: SmallVec<[*mut c_void; 16]> = SmallVec::new();
        let mut bytes = 0;
        for (at, slot) in slots.iter().enumerate() {
            let memory = match slot.source {
                Source::Param(p) if self.plan.params[p].is_array => Some(&frame.memories[p]),
                Source::Buffer(b) => frame.buffers[b].as_ref().map(|(_, memory)| memory),
                Source::Param(_) | Source::Variable(_) | Source::Constant(_) => None,
            };
            bytes += memory.map_or(0, |memory| memory.bytes);
            // SAFETY: `at` is below the lengths of `values` and `constants`, `Plan::check` has compared the other
            // indices, and `arrays` has room for all descriptors of the plan.
            unsafe {
                let number = match slot.source {
                    Source::Param(p) => params.add(p),
                    Source::Buffer(b) => buffers.add(b),
                    Source::Variable(v) => {
                        constants.add(at).write(frame.variables[v] as u64);
                        constants.add(at)
                    }
                    Source::Constant(number) => {
                        constants.add(at).write(float_bits(number, slot.dtype));
                        constants.add(at)
                    }
                };
                let argument = match (slot.passing, memory) {
                    (Passing::Descriptor, Some(memory)) => {
                        let array = arrays.add(array_count);
                        array_count += 1;
                        array.write(ArrayArgument {
                            data: memory.data,
                            extents: memory.lengths,
                        });
                        array.cast()
                    }
                    (Passing::Value, _) => number.cast(),
                    (_, memory) => {
                        let address = memory.map_or(number.cast(), |memory| memory.data);
                        values.add(at).write(address as u64);
                        values.add(at).cast()
                    }
                };
                args.push(argument);
            }
        }
        args.push(result.as_mut_ptr().cast());
        let (entry, list) = (self.entry, args.as_mut_ptr() as usize);
        // SAFETY: the plan describes the entry's arguments; each address belongs to the frame, or to an array that the
        // frame keeps alive. A written array belongs to the caller, who shares it with other threads at his own risk.
        let call = move || unsafe { entry(list as *mut *mut c_void) };
        match bytes > LOCKED_BYTES_MAX {
            true => py.detach(call),
            false => call(),
        }
        result
    }

    /// Returns the outputs: one value, or a tuple.
    fn outputs<'py>(
        &self,
        py: Python<'py>,
        frame: &Frame<'py>,
        result: &[u64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut list: Few<Bound<'py, PyAny>> = Few::new();
        for output in &self.plan.outputs {
            list.push(match *output {
                Output::Buffer(at) => match &frame.buffers[at] {
                    Some((array, _)) => native(py, array, frame.foreign.as_ref())?,
                    None => {
                        let dtype = self.plan.buffers[at].dtype;
                        python_number(py, frame.buffer_numbers[at], dtype)?
                    }
                },
                Output::Result(offset, dtype) => {
                    let word = result[offset / 8] >> (8 * (offset % 8));
                    python_number(py, word, dtype)?
                }
            });
        }
        match (self.plan.is_tuple, list.pop()) {
            (false, Some(only)) if list.is_empty() => Ok(only),
            (false, None) => Ok(py.None().into_bound(py)),
            (_, last) => {
                list.extend(last);
                Ok(PyTuple::new(py, list)?.into_any())
            }
        }
    }
}

/// Returns the bits of a float.
fn float_bits(number: f64, dtype: Dtype) -> u64 {
    match dtype {
        Dtype::F32 => u64::from((number as f32).to_bits()),
        _ => number.to_bits(),
    }
}

/// Returns the Python number with these bits.
fn python_number(py: Python<'_>, bits: u64, dtype: Dtype) -> PyResult<Bound<'_, PyAny>> {
    let unused = 64 - 8 * dtype.size_bytes() as u32;
    let signed = ((bits << unused) as i64) >> unused;
    Ok(match dtype {
        Dtype::F64 => f64::from_bits(bits).into_pyobject(py)?.into_any(),
        Dtype::F32 => f64::from(f32::from_bits(bits as u32))
            .into_pyobject(py)?
            .into_any(),
        Dtype::Signed(_) => signed.into_pyobject(py)?.into_any(),
        Dtype::Unsigned(_) => ((bits << unused) >> unused).into_pyobject(py)?.into_any(),
        Dtype::Bool => (bits & 1 == 1).into_pyobject(py)?.to_owned().into_any(),
    })
}

/// Returns an output as an array of the library that made `foreign`, without a copy.
fn native<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    foreign: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(foreign) = foreign else {
        // Not an error: all parameters are arrays of NumPy.
        return Ok(array.clone());
    };
    let namespace = match foreign.hasattr("__array_namespace__")? {
        true => foreign.call_method0("__array_namespace__")?,
        false => {
            let module: String = foreign.get_type().getattr("__module__")?.extract()?;
            py.import(module.split('.').next().unwrap_or_default())?
                .into_any()
        }
    };
    namespace.call_method1("from_dlpack", (array,))
}
