//! How is memory for much data had, cheaply and without ending the process where there is none?

use std::alloc::{Layout, alloc_zeroed};

use crate::ReadError;
use crate::platform::advise_huge_pages;

/// Zeroed bytes whose pages are not touched yet; in huge pages where the system gives them
/// on request, as NumPy asks for them for arrays of 4 MiB and more.
///
/// # Errors
/// When there is no memory.
pub fn zeroed(nbytes: usize) -> Result<Vec<u8>, ReadError> {
    if nbytes == 0 {
        return Ok(Vec::new());
    }
    let refused = || ReadError::Memory(Some(nbytes as u64));
    let layout = Layout::array::<u8>(nbytes).map_err(|_| refused())?;
    // `vec!` would end the process where there is no memory, and to reserve before would move
    // malloc's threshold for what it maps: libhdf5 would be given other memory than in C.
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(refused());
    }
    // SAFETY: the global allocator gave these bytes, for this layout, and they are zeroed.
    let mut buffer = unsafe { Vec::from_raw_parts(start, nbytes, nbytes) };
    if nbytes >= 4 << 20 {
        advise_huge_pages(&mut buffer);
    }
    Ok(buffer)
}
