//! What is selected of an array, as Python holds it.

use chunkwise_select::{
    Choices, ChunkGrid, Hyperslab, Plan, Resolved, SelectError, Selection, Union,
};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::select_error;
use crate::index;

/// Start, stride, count and block, each of one value a dimension.
pub type Parts = (Vec<u64>, Vec<u64>, Vec<u64>, Vec<u64>);

/// A hyperslab as Python has it.
fn parts_of(slab: &Hyperslab) -> Parts {
    let axes = slab.axes();
    (
        axes.iter().map(|axis| axis.start()).collect(),
        axes.iter().map(|axis| axis.stride()).collect(),
        axes.iter().map(|axis| axis.count()).collect(),
        axes.iter().map(|axis| axis.block()).collect(),
    )
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

/// One hyperslab, or several that are selected together, as Python has them.
#[derive(FromPyObject, IntoPyObject)]
pub enum Hyperslabs {
    One(Parts),
    /// The union of these.
    Union(Vec<Parts>),
}

impl Hyperslabs {
    /// What is selected of an array of `shape`.
    pub fn selection(&self, shape: &[u64]) -> Result<Selection, SelectError> {
        match self {
            Self::One(parts) => Ok(hyperslab(shape, parts)?.into()),
            Self::Union(parts) => Selection::union(shape.len(), hyperslabs(shape, parts)?),
        }
    }

    /// None of a product, which is no union of hyperslabs.
    pub fn of(selection: &Selection) -> Option<Self> {
        match selection {
            Selection::Hyperslab(slab) => Some(Self::One(parts_of(slab))),
            Selection::Union { slabs, .. } => {
                Some(Self::Union(slabs.iter().map(parts_of).collect()))
            }
            Selection::Product(_) => None,
        }
    }
}

/// A selection of an array of known shape (see `_native.pyi`).
#[pyclass(name = "Selection", module = "chunkwise._native", frozen)]
pub struct PySelection(pub Resolved);

/// What one factor of a product chooses.
#[derive(IntoPyObject)]
pub enum Factor<'py> {
    Slice((u64, i64, u64)),
    Points(Vec<Bound<'py, PyArray1<u64>>>),
}

#[pymethods]
impl PySelection {
    /// Shape of the result.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.result_shape.to_vec()
    }

    /// Choices of each factor: 1 of an integer; arrays that pair up are one factor.
    #[getter]
    fn choices(&self) -> Vec<u64> {
        self.0.selection.shape().to_vec()
    }

    /// Of each of `choices`, whether an integer has dropped it.
    #[getter]
    fn dropped(&self) -> Vec<bool> {
        self.0.dropped.to_vec()
    }

    /// Start, stride, count and block; None of anything but a single hyperslab.
    #[getter]
    fn hyperslab(&self) -> Option<Parts> {
        match &self.0.selection {
            Selection::Hyperslab(slab) => Some(parts_of(slab)),
            Selection::Union { .. } | Selection::Product(_) => None,
        }
    }

    /// The same of all that make up a union; None of a product.
    #[getter]
    fn hyperslabs(&self) -> Option<Vec<Parts>> {
        Some(match Hyperslabs::of(&self.0.selection)? {
            Hyperslabs::One(parts) => vec![parts],
            Hyperslabs::Union(parts) => parts,
        })
    }

    /// What each factor of a product chooses; nothing of hyperslabs.
    #[getter]
    fn factors<'py>(&self, py: Python<'py>) -> Vec<Factor<'py>> {
        let Selection::Product(product) = &self.0.selection else { return Vec::new() };
        let factor = |choices| match choices {
            Choices::Slice { start, step, count } => Factor::Slice((start, step, count)),
            Choices::Points(columns) => Factor::Points(
                columns.into_iter().map(|column| PyArray1::from_vec(py, column)).collect(),
            ),
        };
        py.detach(|| product.choices()).into_iter().map(factor).collect()
    }

    /// Whether it is a single mask.
    #[getter]
    fn is_mask(&self) -> bool {
        matches!(&self.0.selection, Selection::Product(product) if product.is_mask())
    }
}

/// What an index selects of an array of `shape`; None where only h5py may understand it.
#[pyfunction]
#[pyo3(signature = (shape, index, label, *, paired = false))]
pub fn select_index(
    shape: Vec<u64>,
    index: &Bound<'_, PyAny>,
    label: &str,
    paired: bool,
) -> PyResult<Option<PySelection>> {
    Ok(index::resolve(&shape, index, paired, label)?.map(PySelection))
}

/// What hyperslabs select of an array of `shape`.
#[pyfunction]
pub fn select_hyperslabs(
    py: Python<'_>,
    shape: Vec<u64>,
    hyperslabs: Hyperslabs,
    label: &str,
) -> PyResult<PySelection> {
    match py.detach(|| hyperslabs.selection(&shape)) {
        Ok(selection) => Ok(PySelection(selection.into())),
        Err(error) => Err(select_error(py, label, &error)),
    }
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
    selection: &PySelection,
    label: &str,
) -> PyResult<(u64, u64, u64)> {
    let summary = ChunkGrid::new(&shape, &chunk)
        .and_then(|grid| Ok(Plan::new(&grid, &selection.0.selection)?.summary()));
    let summary = summary.map_err(|error| select_error(py, label, &error))?;
    Ok((summary.chunks, summary.decoded_elements, summary.selected_elements))
}
