//! How are NumPy arrays of any dtype made, and their bytes reached?

use std::ffi::c_int;

use numpy::npyffi::{self, PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

/// A new C-contiguous array; `zeroed`, or with unspecified content.
///
/// A dtype with a shape of its own (an HDF5 array type) adds its dimensions.
pub fn new_array<'py>(
    py: Python<'py>,
    dtype: &Bound<'py, PyArrayDescr>,
    shape: &[u64],
    zeroed: bool,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let mut dims: smallvec::SmallVec<[npy_intp; 8]> = smallvec::SmallVec::new();
    for &size in shape {
        let too_large = |_| PyMemoryError::new_err(format!("an array of shape {shape:?}"));
        dims.push(npy_intp::try_from(size).map_err(too_large)?);
    }
    let rank = dims.len() as c_int;
    let descr = dtype.clone().into_dtype_ptr();
    // SAFETY: `descr` is a reference of our own, which both functions take over; `dims`
    // holds `rank` sizes; a null result carries a Python exception.
    unsafe {
        let made = if zeroed {
            PY_ARRAY_API.PyArray_Zeros(py, rank, dims.as_mut_ptr(), descr, 0)
        } else {
            PY_ARRAY_API.PyArray_Empty(py, rank, dims.as_mut_ptr(), descr, 0)
        };
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

/// Refuse an array that is to be written to a dataset of another dtype.
pub fn check_dtype(
    array: &Bound<'_, PyUntypedArray>,
    dtype: &Bound<'_, PyArrayDescr>,
    label: &str,
) -> PyResult<()> {
    let given = array.dtype();
    if given.is_equiv_to(dtype) && !given.has_object() {
        return Ok(());
    }
    let message = format!("{label}: the array's dtype is {given}, the dataset's {dtype}");
    Err(PyValueError::new_err(message))
}

/// The array's bytes, for writing.
///
/// # Safety
/// While the slice lives nothing else may read or write the array's memory.
#[allow(clippy::mut_from_ref)]
pub unsafe fn bytes_mut<'a>(array: &'a Bound<'_, PyUntypedArray>) -> PyResult<&'a mut [u8]> {
    let (start, len) = memory(array)?;
    // SAFETY: a live, writeable field of a live array.
    if unsafe { (*array.as_array_ptr()).fields.flags } & npyffi::NPY_ARRAY_WRITEABLE == 0 {
        return Err(PyValueError::new_err("the array is read-only"));
    }
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: a C-contiguous array owns, or keeps alive, this memory; exclusiveness is
    // the caller's contract.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
}

/// The array's bytes.
///
/// # Safety
/// While the slice lives nothing may write to the array's memory.
pub unsafe fn bytes<'a>(array: &'a Bound<'_, PyUntypedArray>) -> PyResult<&'a [u8]> {
    let (start, len) = memory(array)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: a C-contiguous array owns, or keeps alive, this memory; that nobody writes is the
    // caller's contract.
    Ok(unsafe { std::slice::from_raw_parts(start, len) })
}

/// Run `work` on the array's bytes.
pub fn with_bytes<T>(
    array: &Bound<'_, PyUntypedArray>,
    work: impl FnOnce(&[u8]) -> T,
) -> PyResult<T> {
    let (start, len) = memory(array)?;
    if len == 0 {
        return Ok(work(&[]));
    }
    // SAFETY: as in `bytes_mut`; the GIL is held, so that Python code does not write
    // meanwhile.
    Ok(work(unsafe { std::slice::from_raw_parts(start, len) }))
}

/// Where a C-contiguous array's bytes begin, and how many there are.
fn memory(array: &Bound<'_, PyUntypedArray>) -> PyResult<(*mut u8, usize)> {
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err("the array is not C-contiguous"));
    }
    let len = array.len() * array.dtype().itemsize();
    // SAFETY: a live array's field.
    Ok((unsafe { (*array.as_array_ptr()).fields.data }.cast(), len))
}
