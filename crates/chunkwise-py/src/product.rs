//! How do index lists, points, masks and backward slices come from Python?

use chunkwise_select::{Dims, Hyperslab, Product, Selected};
use numpy::{PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::select_error;

/// What is wanted along some neighbouring dimensions.
#[derive(FromPyObject)]
pub enum Factor<'py> {
    /// Start, step and count, of one dimension.
    Slice(u64, i64, u64),
    /// The bytes of a mask, in the shape of its dimensions.
    Mask(PyReadonlyArrayDyn<'py, u8>),
    /// The coordinates of points, one array a dimension.
    Points(Vec<PyReadonlyArray1<'py, i64>>),
}

/// A product of factors (see `_native.pyi`).
#[pyclass(name = "Product", module = "chunkwise._native", frozen)]
pub struct PyProduct(Kept);

enum Kept {
    /// What is regular after all.
    Hyperslab(Hyperslab),
    Product(Product),
}

#[pymethods]
impl PyProduct {
    #[new]
    fn new(
        py: Python<'_>,
        shape: Vec<u64>,
        factors: Vec<Factor<'_>>,
        label: &str,
    ) -> PyResult<Self> {
        let refused = |error| select_error(py, label, &error);
        let mut builder = Product::of(&shape);
        for factor in &factors {
            let made = match factor {
                Factor::Slice(start, step, count) => builder.slice(*start, *step, *count),
                Factor::Mask(mask) => {
                    let shape: Dims = mask.shape().iter().map(|&size| size as u64).collect();
                    builder.mask(&shape, mask.as_slice()?)
                }
                Factor::Points(columns) => {
                    let columns: Vec<&[i64]> =
                        columns.iter().map(|column| column.as_slice()).collect::<Result<_, _>>()?;
                    builder.points(&columns)
                }
            };
            builder = made.map_err(refused)?;
        }
        let product = builder.finish().map_err(refused)?;
        Ok(Self(match product.hyperslab() {
            Some(slab) => Kept::Hyperslab(slab),
            None => Kept::Product(product),
        }))
    }

    /// Number of choices of each factor.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.result_shape().to_vec()
    }
}

impl PyProduct {
    pub fn result_shape(&self) -> Dims {
        match &self.0 {
            Kept::Hyperslab(slab) => slab.shape(),
            Kept::Product(product) => product.shape(),
        }
    }

    pub fn selected(&self) -> Selected<'_> {
        match &self.0 {
            Kept::Hyperslab(slab) => slab.into(),
            Kept::Product(product) => product.into(),
        }
    }
}
