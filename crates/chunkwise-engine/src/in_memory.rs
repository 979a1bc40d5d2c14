//! How are selected elements of an array in memory had, without a dataset?

use chunkwise_select::{ChunkGrid, Plan, SelectError, Selected};

use crate::ReadError;
use crate::scatter::{SharedResult, copy_strip};

/// Copy the elements of `selection`, in C order, out of an array of `shape`.
///
/// # Errors
/// When `data` is not of that shape, or the selection does not fit it or `out`.
pub fn gather<'a>(
    shape: &[u64],
    data: &[u8],
    element_size: usize,
    selection: impl Into<Selected<'a>>,
    out: &mut [u8],
) -> Result<(), ReadError> {
    let selection: Selected<'_> = selection.into();
    // The array is one chunk, of which the selection takes a part.
    let grid = ChunkGrid::new(shape, shape)?;
    let plan = Plan::new(&grid, selection)?;
    for (dimension, (end, &size)) in selection.ends().into_iter().zip(shape).enumerate() {
        if end > size {
            return Err(SelectError::BeyondShape { end, dimension, size }.into());
        }
    }
    let result = SharedResult::new(out);
    let mut copied = Some(());
    for task in plan.tasks() {
        task.for_each_strip(|strip| {
            // SAFETY: this thread alone has the result.
            let one = unsafe { copy_strip(data, &result, &strip, element_size) };
            copied = copied.and(one);
        });
    }
    let overflow = SelectError::Overflow("elements of the data to be written");
    copied.ok_or(ReadError::Select(overflow))
}
