//! What did Python write between the brackets?
//!
//! Most indices are of integers and slices, and reads by them may be short: `regular_items` takes
//! nothing else and asks NumPy nothing.  `resolve` takes all that has a meaning here.

use chunkwise_select::{IndexItem, Resolved, SelectError, resolve_index, resolve_integer};
use numpy::{
    PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyEllipsis, PySequence, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

use crate::errors::{raise, select_error};

/// An index of integers, slices and Ellipsis in our terms.
pub type RegularItems = SmallVec<[IndexItem<'static>; 8]>;

/// The items of an index, or None when one of them is neither an integer, a slice nor
/// an Ellipsis.
pub fn regular_items(index: &Bound<'_, PyAny>) -> Option<RegularItems> {
    match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter_borrowed().map(|item| regular_item(&item)).collect(),
        Err(_) => regular_item(index).map(|item| SmallVec::from_slice(&[item])),
    }
}

fn regular_item(item: &Bound<'_, PyAny>) -> Option<IndexItem<'static>> {
    if let Ok(slice) = item.cast::<PySlice>() {
        let bound = |name| -> Option<Option<i64>> {
            let bound = slice.getattr(name).ok()?;
            if bound.is_none() { Some(None) } else { clipped(&bound).map(Some) }
        };
        return Some(IndexItem::Slice {
            start: bound(pyo3::intern!(item.py(), "start"))?,
            stop: bound(pyo3::intern!(item.py(), "stop"))?,
            step: bound(pyo3::intern!(item.py(), "step"))?,
        });
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Some(IndexItem::Ellipsis);
    }
    integer(item).map(IndexItem::Integer)
}

/// Have made what is made once: names of attributes, and with NumPy its interface.
///
/// A child that is forked while another thread makes them would wait for them for ever.
pub fn prepare(py: Python<'_>, with_numpy: bool) {
    let slice = PySlice::full(py);
    regular_items(&slice);
    if with_numpy {
        is_mask(&slice);
    }
}

/// Whether an index is one array of booleans, alone or in a tuple.
pub fn is_mask(index: &Bound<'_, PyAny>) -> bool {
    let is_mask = |item: &Bound<'_, PyAny>| {
        item.cast::<PyUntypedArray>().is_ok_and(|array| array.dtype().kind() == b'b')
    };
    match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.len() == 1 && tuple.iter_borrowed().all(|item| is_mask(&item)),
        Err(_) => is_mask(index),
    }
}

/// An integer by `__index__`; a bool is not an index here, as it is none in h5py.
fn integer(item: &Bound<'_, PyAny>) -> Option<i64> {
    if item.is_instance_of::<PyBool>() {
        return None;
    }
    item.extract::<i64>().ok()
}

/// What a slice is bounded by: no dimension is as large as what does not fit into 64 bits.
fn clipped(bound: &Bound<'_, PyAny>) -> Option<i64> {
    match bound.extract::<i64>() {
        Ok(value) => Some(value),
        Err(error) if error.is_instance_of::<PyOverflowError>(bound.py()) => {
            Some(if bound.lt(0).ok()? { -i64::MAX } else { i64::MAX })
        }
        Err(_) => None,
    }
}

/// What an index selects of an array of `shape`: every choice of one entry with every choice of
/// the others, or with `paired`, arrays element by element, as NumPy pairs them.
///
/// None where an entry has no meaning here, such as a name; `label` is what an error begins with.
pub fn resolve(
    shape: &[u64],
    index: &Bound<'_, PyAny>,
    paired: bool,
    label: &str,
) -> PyResult<Option<Resolved>> {
    let py = index.py();
    let refused = |error: SelectError| select_error(py, label, &error);
    if let Some(items) = regular_items(index) {
        return resolve_index(shape, &items).map(Some).map_err(refused);
    }
    let items = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![index.clone()],
    };
    let entries: Vec<Option<Entry<'_>>> =
        items.iter().map(|item| Entry::of(item, label)).collect::<PyResult<_>>()?;
    let Some(mut entries) = entries.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    if paired {
        entries = pair(shape, entries, label, py)?;
    }
    let held: Vec<Held<'_>> =
        entries.into_iter().map(|entry| entry.held(label)).collect::<PyResult<_>>()?;
    let columns: Vec<Vec<&[i64]>> = held.iter().map(Held::columns).collect();
    let items: Vec<IndexItem<'_>> = held
        .iter()
        .zip(&columns)
        .map(|(held, columns)| held.item(columns))
        .collect::<PyResult<_>>()?;
    py.detach(|| resolve_index(shape, &items)).map(Some).map_err(refused)
}

/// An entry of an index, as far as NumPy knows it.
enum Entry<'py> {
    Regular(IndexItem<'static>),
    /// Of integers.
    Array(Bound<'py, PyUntypedArray>),
    /// Of booleans, of at least one dimension.
    Mask(Bound<'py, PyUntypedArray>),
    /// Arrays that were paired, a row each, and the shape that they had.
    Paired(Vec<Vec<i64>>, Vec<u64>),
}

/// An entry whose elements can be borrowed.
enum Held<'py> {
    Regular(IndexItem<'static>),
    Points { columns: Vec<Vec<i64>>, shape: Vec<u64> },
    Mask { bytes: PyReadonlyArrayDyn<'py, u8>, shape: Vec<u64> },
}

impl<'py> Entry<'py> {
    /// None for what has no meaning here.
    fn of(item: &Bound<'py, PyAny>, label: &str) -> PyResult<Option<Self>> {
        let py = item.py();
        if let Some(item) = regular_item(item) {
            return Ok(Some(Self::Regular(item)));
        }
        let wrong =
            |message: String| Err(raise(py, "SelectionError", format!("{label}: {message}")));
        if item.is_instance_of::<PySlice>() {
            return wrong("a slice's start, stop and step are integers".into());
        }
        if item.is_instance_of::<PyBool>()
            || item.is_instance_of::<PyString>()
            || item.is_instance_of::<PyBytes>()
        {
            return Ok(None);
        }
        if item.extract::<i64>().is_err_and(|error| error.is_instance_of::<PyOverflowError>(py)) {
            return wrong(format!("index {item} is out of range"));
        }
        if item.cast::<PySequence>().is_err() && !item.hasattr("__array__")? {
            return Ok(None);
        }
        let array = as_array(item, label)?;
        // Text may be names of fields, and what has no dimension is no list.
        Ok(match array.dtype().kind() {
            b'U' | b'S' | b'O' => None,
            _ if array.ndim() == 0 => None,
            b'b' => Some(Self::Mask(array)),
            _ => Some(Self::Array(integers(array.as_any(), label)?)),
        })
    }

    fn rank(&self) -> usize {
        match self {
            Self::Regular(item) => item.rank(),
            Self::Array(_) => 1,
            Self::Mask(mask) => mask.ndim(),
            Self::Paired(columns, _) => columns.len(),
        }
    }

    fn held(self, label: &str) -> PyResult<Held<'py>> {
        Ok(match self {
            Self::Regular(item) => Held::Regular(item),
            Self::Paired(columns, shape) => Held::Points { columns, shape },
            Self::Array(array) => {
                if array.ndim() != 1 {
                    let dimensions = array.ndim();
                    let message = format!(
                        "{label}: a list of indices has one dimension, not {dimensions}; vindex \
                         takes arrays of any"
                    );
                    return Err(raise(array.py(), "SelectionError", message));
                }
                Held::Points { columns: vec![elements(array.as_any())?], shape: shape_of(&array) }
            }
            Self::Mask(mask) => {
                let py = mask.py();
                let contiguous = numpy(py)?.call_method1("ascontiguousarray", (&mask,))?;
                let bytes = contiguous.call_method1("view", ("u1",))?;
                Held::Mask { bytes: bytes.extract()?, shape: shape_of(&mask) }
            }
        })
    }
}

impl Held<'_> {
    fn columns(&self) -> Vec<&[i64]> {
        match self {
            Self::Points { columns, .. } => columns.iter().map(Vec::as_slice).collect(),
            Self::Regular(_) | Self::Mask { .. } => Vec::new(),
        }
    }

    fn item<'a>(&'a self, columns: &'a [&'a [i64]]) -> PyResult<IndexItem<'a>> {
        Ok(match self {
            Self::Regular(item) => *item,
            Self::Points { shape, .. } => IndexItem::Points { columns, shape },
            Self::Mask { bytes, shape } => IndexItem::Mask { shape, bytes: bytes.as_slice()? },
        })
    }
}

/// Make one entry of all from the first array to the last: broadcast together, as NumPy does.
fn pair<'py>(
    shape: &[u64],
    mut entries: Vec<Entry<'py>>,
    label: &str,
    py: Python<'py>,
) -> PyResult<Vec<Entry<'py>>> {
    let wrong = |message: String| Err(raise(py, "SelectionError", format!("{label}: {message}")));
    let is_ellipsis = |entry: &Entry<'_>| matches!(entry, Entry::Regular(IndexItem::Ellipsis));
    let is_array = |entry: &Entry<'_>| matches!(entry, Entry::Array(_) | Entry::Mask(_));
    let refused = |error: SelectError| Err(select_error(py, label, &error));
    let given: usize = entries.iter().map(Entry::rank).sum();
    if entries.iter().filter(|entry| is_ellipsis(entry)).count() > 1 {
        return refused(SelectError::TwoEllipses);
    }
    if given > shape.len() {
        return refused(SelectError::TooManyIndices { indices: given, dataset: shape.len() });
    }
    if let Some(at) = entries.iter().position(is_ellipsis) {
        let all = IndexItem::Slice { start: None, stop: None, step: None };
        let missing = shape.len() - given;
        entries.splice(at..=at, (0..missing).map(|_| Entry::Regular(all)));
    }
    let first = entries.iter().position(is_array);
    let (Some(first), Some(last)) = (first, entries.iter().rposition(is_array)) else {
        return Ok(entries);
    };
    if first == last && matches!(entries[first], Entry::Mask(_)) {
        return Ok(entries);
    }
    let mut dimension: usize = entries[..first].iter().map(Entry::rank).sum();
    let mut columns: Vec<Bound<'py, PyAny>> = Vec::new();
    for entry in &entries[first..=last] {
        match entry {
            Entry::Regular(IndexItem::Integer(at)) => {
                // Where other arrays are empty, nobody looks at it again.
                if let Err(error) = resolve_integer(*at, dimension, shape[dimension]) {
                    return refused(error);
                }
                columns.push(at.into_pyobject(py)?.into_any());
            }
            Entry::Regular(_) | Entry::Paired(..) => {
                return wrong(
                    "vindex takes arrays for neighbouring dimensions, with no slice in between"
                        .into(),
                );
            }
            Entry::Array(array) => columns.push(array.clone().into_any()),
            Entry::Mask(mask) => {
                let dataset = &shape[dimension..dimension + mask.ndim()];
                if shape_of(mask) != dataset {
                    let (mask, dataset) = (shape_of(mask), dataset.to_vec());
                    return refused(SelectError::MaskShape { mask, dataset });
                }
                columns.extend(
                    mask.call_method0("nonzero")?.try_iter()?.collect::<PyResult<Vec<_>>>()?,
                );
            }
        }
        dimension += entry.rank();
    }
    let columns = PyTuple::new(py, columns)?;
    let together = match numpy(py)?.call_method1("broadcast_arrays", &columns) {
        Ok(together) => together.try_iter()?.collect::<PyResult<Vec<_>>>()?,
        Err(error) if error.is_instance_of::<PyValueError>(py) => {
            let shape = |column: Bound<'py, PyAny>| {
                numpy(py)?.call_method1("shape", (column,)).map(|shape| shape.to_string())
            };
            let shapes = columns.iter().map(shape).collect::<PyResult<Vec<_>>>()?;
            return wrong(format!("arrays of shapes {} cannot be paired", shapes.join(", ")));
        }
        Err(error) => return Err(error),
    };
    let shape = together.first().map(|one| one.cast().map(shape_of)).transpose()?;
    let columns = together.iter().map(elements).collect::<PyResult<_>>()?;
    let paired = Entry::Paired(columns, shape.unwrap_or_default());
    entries.splice(first..=last, [paired]);
    Ok(entries)
}

/// An array of 64-bit integers of what is given, if it is one of integers, or of nothing at all;
/// `what` is what an error begins with.
#[pyfunction]
pub fn integers<'py>(
    given: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = given.py();
    let array = as_array(given, what)?;
    let kind = array.dtype().kind();
    let wrong = |message: String| Err(raise(py, "SelectionError", format!("{what}: {message}")));
    if !array.is_empty() && !matches!(kind, b'i' | b'u') {
        return wrong(format!("indices are integers, not {}", array.dtype()));
    }
    if kind == b'u' && !array.is_empty() {
        let most = array.call_method0("max")?;
        if most.gt(i64::MAX)? {
            return wrong(format!("index {most} is out of range"));
        }
    }
    let copy = PyDict::new(py);
    copy.set_item("copy", false)?;
    Ok(array.call_method("astype", ("i8",), Some(&copy))?.cast_into()?)
}

fn as_array<'py>(given: &Bound<'py, PyAny>, label: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = given.py();
    match numpy(py)?.call_method1("asarray", (given,)) {
        Ok(array) => Ok(array.cast_into()?),
        Err(error) if error.is_instance_of::<PyValueError>(py) => {
            Err(raise(py, "SelectionError", format!("{label}: {}", error.value(py))))
        }
        Err(error) => Err(error),
    }
}

fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("numpy")
}

fn shape_of(array: &Bound<'_, PyUntypedArray>) -> Vec<u64> {
    array.shape().iter().map(|&size| size as u64).collect()
}

/// The elements of an array of 64-bit integers, in C order.
fn elements(array: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let flat = numpy(array.py())?.call_method1("ravel", (array,))?;
    Ok(flat.extract::<PyReadonlyArray1<'_, i64>>()?.as_array().to_vec())
}
