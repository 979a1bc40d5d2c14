//! What did Python write between the brackets?

use chunkwise_select::{
    ChunkGrid, Dims, Hyperslab, IndexItem, Plan, SelectError, Selected, Selection, Union,
    resolve_index,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::errors::select_error;
use crate::product::PyProduct;

/// An index in our terms.
pub type Items = SmallVec<[IndexItem; 8]>;

/// The items of an index, or None when one of them is neither an integer, a slice nor
/// an Ellipsis (masks, lists, field names): h5py understands more.
pub fn items_of(index: &Bound<'_, PyAny>) -> Option<Items> {
    match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter_borrowed().map(|item| item_of(&item)).collect(),
        Err(_) => item_of(index).map(|item| SmallVec::from_slice(&[item])),
    }
}

fn item_of(item: &Bound<'_, PyAny>) -> Option<IndexItem> {
    if let Ok(slice) = item.cast::<PySlice>() {
        let bound = |name| -> Option<Option<i64>> {
            let bound = slice.getattr(name).ok()?;
            if bound.is_none() { Some(None) } else { integer(&bound).map(Some) }
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

/// An integer by `__index__`; a bool is not an index here, as it is none in h5py.
fn integer(item: &Bound<'_, PyAny>) -> Option<i64> {
    if item.is_instance_of::<PyBool>() {
        return None;
    }
    item.extract::<i64>().ok()
}

/// Start, stride, count and block, each of one value a dimension.
pub type Parts = (Vec<u64>, Vec<u64>, Vec<u64>, Vec<u64>);

/// The hyperslab of an index on an array of `shape`, or None where h5py understands
/// more; `label` is what an error begins with.
#[pyfunction]
pub fn hyperslab_of(
    shape: Vec<u64>,
    index: &Bound<'_, PyAny>,
    label: &str,
) -> PyResult<Option<Parts>> {
    let Some(items) = items_of(index) else { return Ok(None) };
    let indexed =
        resolve_index(&shape, &items).map_err(|error| select_error(index.py(), label, &error))?;
    Ok(Some(parts_of(&indexed.slab)))
}

/// A hyperslab as Python has it.
pub fn parts_of(slab: &Hyperslab) -> Parts {
    let axes = slab.axes();
    (
        axes.iter().map(|axis| axis.start()).collect(),
        axes.iter().map(|axis| axis.stride()).collect(),
        axes.iter().map(|axis| axis.count()).collect(),
        axes.iter().map(|axis| axis.block()).collect(),
    )
}

/// A selection as Python has it.
#[derive(FromPyObject, IntoPyObject)]
pub enum Request {
    Hyperslab(Parts),
    /// The union of these.
    Union(Vec<Parts>),
}

impl Request {
    /// What is selected of an array of `shape`.
    pub fn selection(&self, shape: &[u64]) -> Result<Selection, SelectError> {
        match self {
            Self::Hyperslab(parts) => Ok(hyperslab(shape, parts)?.into()),
            Self::Union(parts) => Selection::union(shape.len(), hyperslabs(shape, parts)?),
        }
    }
}

impl From<&Selection> for Request {
    fn from(selection: &Selection) -> Self {
        match selection {
            Selection::Hyperslab(slab) => Self::Hyperslab(parts_of(slab)),
            Selection::Union { slabs, .. } => Self::Union(slabs.iter().map(parts_of).collect()),
        }
    }
}

/// Everything that can be read: a selection as Python has it, or a product.
#[derive(FromPyObject)]
pub enum Wanted<'py> {
    Product(Bound<'py, PyProduct>),
    Request(Request),
}

/// The same, resolved against a shape.
pub enum Chosen<'a> {
    Product(&'a PyProduct),
    Selection(Selection),
}

impl Wanted<'_> {
    /// What is selected of an array of `shape`.
    pub fn chosen(&self, py: Python<'_>, shape: &[u64]) -> Result<Chosen<'_>, SelectError> {
        Ok(match self {
            Self::Product(product) => Chosen::Product(product.get()),
            Self::Request(request) => Chosen::Selection(py.detach(|| request.selection(shape))?),
        })
    }
}

impl Chosen<'_> {
    /// Shape of the result, slowest dimension first.
    pub fn shape(&self) -> Dims {
        match self {
            Self::Product(product) => product.result_shape(),
            Self::Selection(selection) => selection.shape(),
        }
    }

    /// The elements.
    pub fn selected(&self) -> Selected<'_> {
        match self {
            Self::Product(product) => product.selected(),
            Self::Selection(selection) => selection.into(),
        }
    }
}

fn hyperslab(
    shape: &[u64],
    (start, stride, count, block): &Parts,
) -> Result<Hyperslab, SelectError> {
    Hyperslab::new(shape, start, stride, count, block)
}

fn hyperslabs(shape: &[u64], parts: &[Parts]) -> Result<Vec<Hyperslab>, SelectError> {
    parts.iter().map(|parts| hyperslab(shape, parts)).collect()
}

/// Boxes that hold the elements of both unions ("&"), or those of the first alone ("-"),
/// whatever array they are of.
#[pyfunction]
pub fn combined(
    py: Python<'_>,
    rank: usize,
    left: Vec<Parts>,
    operation: &str,
    right: Vec<Parts>,
) -> PyResult<Vec<Parts>> {
    let shape = vec![u64::MAX; rank];
    let union = |parts: &[Parts]| Union::new(rank, &hyperslabs(&shape, parts)?);
    let combine = match operation {
        "&" => Union::and,
        "-" => Union::minus,
        _ => return Err(PyValueError::new_err("an operation is & or -")),
    };
    let boxes = py.detach(|| combine(&union(&left)?, &union(&right)?)?.boxes());
    let boxes = boxes.map_err(|error| select_error(py, "selection", &error))?;
    Ok(boxes.iter().map(parts_of).collect())
}

/// How many elements a union selects, whatever array it is of.
#[pyfunction]
pub fn union_len(py: Python<'_>, rank: usize, union: Vec<Parts>) -> PyResult<u64> {
    let shape = vec![u64::MAX; rank];
    let union = py.detach(|| Union::new(rank, &hyperslabs(&shape, &union)?));
    Ok(union.map_err(|error| select_error(py, "selection", &error))?.len())
}

/// How many chunks a selection touches, how many elements those hold together, and how
/// many of them are selected.
#[pyfunction]
pub fn count_chunks(
    py: Python<'_>,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    selection: Wanted<'_>,
    label: &str,
) -> PyResult<(u64, u64, u64)> {
    let summary = selection.chosen(py, &shape).and_then(|selection| {
        let grid = ChunkGrid::new(&shape, &chunk)?;
        Ok(Plan::new(&grid, selection.selected())?.summary())
    });
    let summary = summary.map_err(|error| select_error(py, label, &error))?;
    Ok((summary.chunks, summary.decoded_elements, summary.selected_elements))
}
