//! What did Python write between the brackets?

use chunkwise_select::{ChunkGrid, Hyperslab, IndexItem, Plan, resolve_index};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::errors::select_error;

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

/// How many chunks a hyperslab touches, and how many elements those hold together.
#[pyfunction]
pub fn count_chunks(
    py: Python<'_>,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    hyperslab: Parts,
    label: &str,
) -> PyResult<(u64, u64)> {
    let (start, stride, count, block) = hyperslab;
    let summary = Hyperslab::new(&shape, &start, &stride, &count, &block).and_then(|slab| {
        let grid = ChunkGrid::new(&shape, &chunk)?;
        Ok(Plan::new(&grid, &slab)?.summary())
    });
    let summary = summary.map_err(|error| select_error(py, label, &error))?;
    Ok((summary.chunks, summary.decoded_elements))
}
