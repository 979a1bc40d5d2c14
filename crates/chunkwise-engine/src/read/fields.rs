//! Which bytes of each element are wanted, as what, and where do they go?
//!
//! Of a compound type a program often wants a field or two.  Their bytes are copied straight from
//! decoded chunks; the other fields are decoded with them, and left there.  Where another type is
//! wanted, of a field or of whole elements, they are converted on the way.

use chunkwise_select::Strip;

use crate::ReadError;
use crate::read::convert::Conversion;
use crate::read::scatter::{SharedResult, copy_strip};
use crate::read::view::StripView;

/// A run of bytes of each element.
#[derive(Debug, Clone, Copy)]
pub struct FieldBytes {
    /// Where it begins in an element of the dataset.
    pub src: usize,
    /// Where it goes in an element of the result.
    pub dst: usize,
    /// What becomes of it.
    pub made: Made,
}

/// What bytes become.
#[derive(Debug, Clone, Copy)]
pub enum Made {
    /// This many are copied.
    Copy(usize),
    /// An element of one type becomes one of another.
    Converted(Conversion),
}

impl FieldBytes {
    /// How many bytes are taken, and how many they become.
    fn len(&self) -> (usize, usize) {
        match &self.made {
            Made::Copy(len) => (*len, *len),
            Made::Converted(conversion) => (conversion.from_size(), conversion.to_size()),
        }
    }
}

/// Some fields of a dataset's elements, or the elements, as the result has them.
#[derive(Debug, Clone)]
pub struct Fields {
    /// Bytes of an element of the result.
    pub(crate) size: usize,
    parts: Vec<FieldBytes>,
}

/// Elements that are converted at a time, of up to this many bytes before and behind.
const BLOCK_LEN: usize = 256;
const BLOCK_NBYTES: usize = 8 * BLOCK_LEN;

impl Fields {
    /// Parts of elements of `element_size` bytes, as elements of `size` bytes; bytes of these that no
    /// part fills are left as they are.
    ///
    /// # Errors
    /// [`ReadError::Fields`] where a part reaches beyond an element, or parts overlap in the result.
    pub fn new(
        element_size: usize,
        size: usize,
        mut parts: Vec<FieldBytes>,
    ) -> Result<Self, ReadError> {
        parts.sort_unstable_by_key(|part| part.dst);
        let mut filled = 0;
        for part in &parts {
            let (taken, made) = part.len();
            let (src, dst) = (part.src.checked_add(taken), part.dst.checked_add(made));
            let inside = src.is_some_and(|end| end <= element_size) && part.dst >= filled;
            filled = dst.filter(|&end| end <= size && inside).ok_or(ReadError::Fields)?;
        }
        if size == 0 { Err(ReadError::Fields) } else { Ok(Self { size, parts }) }
    }

    /// The fill value of an element of the result.
    pub(crate) fn of_element(&self, element: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.size];
        for part in &self.parts {
            let (taken, made) = part.len();
            let (from, to) = (&element[part.src..][..taken], &mut out[part.dst..][..made]);
            match &part.made {
                Made::Copy(_) => to.copy_from_slice(from),
                Made::Converted(conversion) => drop(convert_all(conversion, from, to)),
            }
        }
        out
    }

    /// Copy the fields of one strip of elements, which have `size` bytes in the chunk; as
    /// [`StripView::copy`].
    pub(crate) fn copy(&self, chunk: &[u8], view: &mut StripView<'_>, size: usize) -> Option<()> {
        let (strip, result) = view.place(self.size)?;
        let (from, to) = (size as u64, self.size as u64);
        // Runs of one element each are one run, of elements that lie apart.
        let (runs, len) = match strip {
            Strip { len: 1, backwards: false, .. } => (1, strip.count),
            _ => (strip.count, strip.len),
        };
        let apart = |step: u64| if runs == strip.count { 1 } else { step };
        let (src_step, dst_step) =
            (from.checked_mul(apart(strip.src_step))?, to.checked_mul(apart(strip.dst_step))?);
        for run in 0..runs {
            let place = if strip.backwards { runs - 1 - run } else { run };
            let src = strip.src.checked_add(run.checked_mul(strip.src_step)?)?.checked_mul(from)?;
            let dst = strip.dst.checked_add(place.checked_mul(strip.dst_step)?)?.checked_mul(to)?;
            for part in &self.parts {
                let (src, dst) = (src + part.src as u64, dst + part.dst as u64);
                let elements = Elements { src, dst, count: len, src_step, dst_step };
                // SAFETY: the bytes are those of the strip's elements, which are the view's own.
                unsafe {
                    match &part.made {
                        // In bytes: each element of the run has a run of its own.
                        Made::Copy(len) => {
                            copy_strip(chunk, result, &elements.strip(*len as u64), 1)?;
                        }
                        Made::Converted(conversion) => {
                            elements.convert(chunk, result, conversion)?;
                        }
                    }
                }
            }
        }
        Some(())
    }
}

/// Where parts of elements lie, in bytes.
struct Elements {
    src: u64,
    dst: u64,
    count: u64,
    src_step: u64,
    dst_step: u64,
}

impl Elements {
    /// A run of `len` bytes of each.
    fn strip(&self, len: u64) -> Strip {
        let Self { src, dst, count, src_step, dst_step } = *self;
        Strip { src, dst, len, count, src_step, dst_step, backwards: false }
    }

    /// Convert them; as [`copy_strip`].
    ///
    /// # Safety
    /// As [`copy_strip`].
    unsafe fn convert(
        &self,
        chunk: &[u8],
        result: &SharedResult<'_>,
        conversion: &Conversion,
    ) -> Option<()> {
        let (from_size, to_size) = (conversion.from_size() as u64, conversion.to_size() as u64);
        let packed = (self.src_step == from_size, self.dst_step == to_size);
        if conversion.is_direct() && packed == (true, true) {
            let from = bytes_of(chunk, self.src, self.count.checked_mul(from_size)?)?;
            // SAFETY: the caller's contract.
            let to = unsafe { result.part(self.dst, self.count.checked_mul(to_size)?)? };
            conversion.direct(from, to);
            return Some(());
        }
        let largest = from_size.max(to_size) as usize;
        let mut blocks = [0; 2 * BLOCK_NBYTES];
        let mut large = Vec::new();
        // Of long text an element is a block.
        let (from, to) = if largest > BLOCK_NBYTES {
            large.resize(2 * largest, 0);
            large.split_at_mut(largest)
        } else {
            blocks.split_at_mut(BLOCK_NBYTES)
        };
        let at_once = (from.len() / largest) as u64;
        let mut done = 0;
        while done < self.count {
            let count = at_once.min(self.count - done);
            let (src, dst) = (self.src + done * self.src_step, self.dst + done * self.dst_step);
            let from = &mut from[..(count * from_size) as usize];
            let to = &mut to[..(count * to_size) as usize];
            let gathered =
                Self { src, dst: 0, count, src_step: self.src_step, dst_step: from_size };
            let scattered = Self { src: 0, dst, count, src_step: to_size, dst_step: self.dst_step };
            // SAFETY: the block is this thread's own; for the result, the caller's contract.
            unsafe {
                gathered.taken(chunk, &SharedResult::new(from), from_size)?;
                conversion.by_block(from, to);
                scattered.taken(to, result, to_size)?;
            }
            done += count;
        }
        Some(())
    }

    /// Copy `len` bytes of each, at once where they lie together.
    ///
    /// # Safety
    /// As [`copy_strip`].
    unsafe fn taken(&self, from: &[u8], to: &SharedResult<'_>, len: u64) -> Option<()> {
        let strip = if self.src_step == len && self.dst_step == len {
            Strip { len: len * self.count, count: 1, ..self.strip(len) }
        } else {
            self.strip(len)
        };
        // SAFETY: the caller's contract.
        unsafe { copy_strip(from, to, &strip, 1) }
    }
}

/// Convert elements that lie together; None, with part of them converted, where `to` is too short.
pub fn convert_all(conversion: &Conversion, from: &[u8], to: &mut [u8]) -> Option<()> {
    let (src_step, dst_step) = (conversion.from_size() as u64, conversion.to_size() as u64);
    let count = from.len() as u64 / src_step;
    let elements = Elements { src: 0, dst: 0, count, src_step, dst_step };
    // SAFETY: `to` is borrowed by nobody else.
    unsafe { elements.convert(from, &SharedResult::new(to), conversion) }
}

fn bytes_of(chunk: &[u8], begin: u64, len: u64) -> Option<&[u8]> {
    let begin = usize::try_from(begin).ok()?;
    chunk.get(begin..begin.checked_add(usize::try_from(len).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::convert::{NumberKind, NumberType};

    fn strips() -> Vec<Strip> {
        let one =
            Strip { src: 3, dst: 5, len: 1, count: 1, src_step: 1, dst_step: 1, backwards: false };
        vec![
            one,
            Strip { len: 900, ..one },
            // Elements that lie apart, and runs of some, forwards and backwards.
            Strip { count: 700, src_step: 2, ..one },
            Strip { count: 700, src_step: 2, dst_step: 2, ..one },
            Strip { len: 3, count: 40, src_step: 7, dst_step: 3, ..one },
            Strip { len: 3, count: 40, src_step: 7, dst_step: 5, backwards: true, ..one },
            Strip { count: 30, src_step: 4, dst_step: 1, backwards: true, ..one },
        ]
    }

    #[test]
    fn converted_strips_are_copied_strips_converted() {
        let numbers: Vec<i16> = (0..2000).map(|i| (i * 37 - 30_000) as i16).collect();
        for (swapped, to_swapped) in [(false, false), (true, false), (false, true), (true, true)] {
            let bytes = |number: &i16| {
                if swapped { number.to_be_bytes() } else { number.to_le_bytes() }
            };
            let chunk: Vec<u8> = numbers.iter().flat_map(bytes).collect();
            let from = NumberType { kind: NumberKind::Signed, size: 2, swapped };
            let to = NumberType { kind: NumberKind::Float, size: 8, swapped: to_swapped };
            let made = Made::Converted(Conversion::of_numbers(from, to).unwrap());
            let fields = Fields::new(2, 12, vec![FieldBytes { src: 0, dst: 4, made }]).unwrap();
            for strip in strips() {
                let (mut copied, mut converted) = (vec![0u8; 2 * 2000], vec![7u8; 12 * 2000]);
                StripView::alone(strip, &mut copied, 2).copy(&chunk).unwrap();
                let mut view = StripView::alone(strip, &mut converted, 12);
                fields.copy(&chunk, &mut view, 2).unwrap();
                let touched = |place: usize| {
                    let run = (place as u64).checked_sub(strip.dst)?;
                    let (of, at) =
                        (run / strip.dst_step.max(strip.len), run % strip.dst_step.max(strip.len));
                    (of < strip.count && at < strip.len).then_some(())
                };
                for place in 0..2000 {
                    let element = &converted[12 * place..][..12];
                    if touched(place).is_none() {
                        assert_eq!(element, [7; 12], "{strip:?} {place}");
                        continue;
                    }
                    let number = [copied[2 * place], copied[2 * place + 1]];
                    let number = if swapped {
                        i16::from_be_bytes(number)
                    } else {
                        i16::from_le_bytes(number)
                    };
                    let wanted = f64::from(number);
                    let wanted =
                        if to_swapped { wanted.to_be_bytes() } else { wanted.to_le_bytes() };
                    assert_eq!(element[..4], [7; 4]);
                    assert_eq!(element[4..], wanted, "{strip:?} {place}");
                }
            }
        }
    }

    #[test]
    fn text_longer_than_a_block() {
        let (from_size, to_size) = (3 * BLOCK_NBYTES, 3 * BLOCK_NBYTES + 5);
        let conversion = Conversion::of_text(from_size, crate::Padding::Spaces, to_size).unwrap();
        let mut from = vec![b'x'; 2 * from_size];
        from[from_size - 9..from_size].fill(b' ');
        let mut to = vec![1; 2 * to_size];
        convert_all(&conversion, &from, &mut to).unwrap();
        assert_eq!(to[..from_size - 9], from[..from_size - 9]);
        assert!(to[from_size - 9..to_size].iter().all(|&byte| byte == 0));
        assert_eq!(to[to_size..][..from_size], from[from_size..]);
        assert!(convert_all(&conversion, &from, &mut to[1..]).is_none());
    }
}
