//! How are selected elements of an array in memory had or set, without a dataset?

use chunkwise_select::{ChunkGrid, Plan, SelectError, Selected};

use crate::ReadError;
use crate::read::view::StripView;

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
    let mut copied = Some(());
    for task in plan.tasks() {
        task.for_each_strip(|strip| {
            let one = StripView::alone(strip, out, element_size).copy(data);
            copied = copied.and(one);
        });
    }
    let overflow = SelectError::Overflow("elements of the data to be written");
    copied.ok_or(ReadError::Select(overflow))
}

/// Copy `from` to the elements of `selection`, in C order, of an array of `shape` at `data`.
///
/// # Errors
/// When the selection does not fit the array, or `from` has another number of elements; nothing is
/// copied then.
///
/// # Safety
/// `data` is valid for writing at each selected element, and nobody else uses these meanwhile; the
/// rest of the array is not touched, and need not be there.
pub unsafe fn spread<'a>(
    shape: &[u64],
    data: *mut u8,
    element_size: usize,
    selection: impl Into<Selected<'a>>,
    from: &[u8],
) -> Result<(), ReadError> {
    let selection: Selected<'_> = selection.into();
    let grid = ChunkGrid::new(shape, shape)?;
    let plan = Plan::new(&grid, selection)?;
    let overflow = || ReadError::Select(SelectError::Overflow("elements of an array in memory"));
    let size = element_size as u64;
    let nbytes = plan.summary().selected_elements.checked_mul(size).ok_or_else(overflow)?;
    if nbytes != from.len() as u64 {
        return Err(ReadError::Destination { selected: nbytes, destination: from.len() as u64 });
    }
    let total = shape.iter().try_fold(size, |n, &len| n.checked_mul(len));
    total.filter(|&n| isize::try_from(n).is_ok()).ok_or_else(overflow)?;
    for task in plan.tasks() {
        task.for_each_strip(|strip| {
            for run in 0..strip.count {
                let place = if strip.backwards { strip.count - 1 - run } else { run };
                let to = (strip.src + run * strip.src_step) as usize * element_size;
                let at = (strip.dst + place * strip.dst_step) as usize * element_size;
                let run = &from[at..][..strip.len as usize * element_size];
                // SAFETY: a plan's strips lie within the array, whose bytes can be counted; the
                // elements are the caller's to write.
                unsafe { std::ptr::copy_nonoverlapping(run.as_ptr(), data.add(to), run.len()) };
            }
        });
    }
    Ok(())
}
