//! Which conversions are requested, in NumPy's words?

use chunkwise_engine::{Conversion, FieldBytes, Made, NumberKind, NumberType, Padding};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{bytes, bytes_mut};
use numpy::PyUntypedArray;

/// What is taken of an element: bytes as they are, or a conversion between two types.
#[derive(Clone, FromPyObject)]
pub enum Taken {
    Bytes(usize),
    Converted(String, String),
}

/// The engine's words for parts of elements; None for a type that it does not convert.
pub fn field_bytes(parts: Vec<(usize, usize, Taken)>) -> Option<Vec<FieldBytes>> {
    let part = |(src, dst, taken)| {
        let made = match taken {
            Taken::Bytes(len) => Made::Copy(len),
            Taken::Converted(from, to) => Made::Converted(conversion(&from, &to)?),
        };
        Some(FieldBytes { src, dst, made })
    };
    parts.into_iter().map(part).collect()
}

/// Convert the elements of an array into another of as many; false for types that are not converted.
#[pyfunction]
pub fn convert_elements(
    from: &Bound<'_, PyUntypedArray>,
    to: &Bound<'_, PyUntypedArray>,
    types: (String, String),
) -> PyResult<bool> {
    let Some(conversion) = conversion(&types.0, &types.1) else { return Ok(false) };
    // SAFETY: as for every `out=` of NumPy, who has the arrays leaves them alone meanwhile.
    let (from_bytes, to_bytes) = unsafe { (bytes(from)?, bytes_mut(to)?) };
    let fits = from_bytes.len() / conversion.from_size() * conversion.to_size() == to_bytes.len();
    let converted =
        || fits && chunkwise_engine::convert_all(&conversion, from_bytes, to_bytes).is_some();
    Ok(from.py().detach(converted))
}

/// Numbers of a type at which two libraries may convert differently, one after the other; None for a
/// type that is not converted.
#[pyfunction]
pub fn edge_numbers<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
    number(name).map(|of| PyBytes::new(py, &chunkwise_engine::edge_numbers(of)))
}

fn conversion(from: &str, to: &str) -> Option<Conversion> {
    match (kind_and_size(from)?, kind_and_size(to)?) {
        (('S', from_size), ('S', to_size)) => {
            let padding = if from.starts_with(' ') { Padding::Spaces } else { Padding::Null };
            Conversion::of_text(from_size, padding, to_size)
        }
        _ => Conversion::of_numbers(number(from)?, number(to)?),
    }
}

/// A type of numbers as NumPy writes it, such as `<f4`.
fn number(text: &str) -> Option<NumberType> {
    let (kind, size) = kind_and_size(text)?;
    let kind = match kind {
        'i' => NumberKind::Signed,
        'u' => NumberKind::Unsigned,
        'f' => NumberKind::Float,
        _ => return None,
    };
    let foreign = if cfg!(target_endian = "little") { '>' } else { '<' };
    Some(NumberType { kind, size, swapped: size > 1 && text.starts_with(foreign) })
}

fn kind_and_size(text: &str) -> Option<(char, usize)> {
    let mut letters = text.get(1..)?.chars();
    Some((letters.next()?, letters.as_str().parse().ok()?))
}
