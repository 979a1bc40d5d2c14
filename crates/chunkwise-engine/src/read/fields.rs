//! Which bytes of each element are wanted, as what, and where do they go?
//!
//! Of a compound type a program often wants a field or two.  Their bytes are copied straight from
//! decoded chunks; the other fields are decoded with them, and left there.  Where another type is
//! wanted, of a field or of whole elements, they are converted on the way.

use chunkwise_select::Strip;

use crate::ReadError;
use crate::read::convert::Conversion;
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
        let place = |part: &FieldBytes| {
            (part.src as u64, part.dst as u64..(part.dst + part.len().1) as u64)
        };
        view.for_each_part(size as u64, &self.parts, place, |part, mut bytes| match &part.made {
            Made::Copy(_) => bytes.copy(chunk),
            Made::Converted(conversion) => convert(conversion, chunk, bytes),
        })
    }
}

/// Convert elements, each of which becomes a run of the view's bytes; as [`StripView::copy`].
#[inline]
fn convert(conversion: &Conversion, chunk: &[u8], mut to: StripView<'_>) -> Option<()> {
    let from_size = conversion.from_size() as u64;
    let (src, count, src_step) = (to.src, to.count, to.src_step);
    if conversion.is_direct()
        && src_step == from_size
        && let Some(to) = to.run()
    {
        let from = bytes_of(chunk, src, count.checked_mul(from_size)?)?;
        conversion.direct(from, to);
        return Some(());
    }
    convert_by_blocks(conversion, chunk, to)
}

/// As [`convert`], of elements that lie apart, or are in foreign order.
#[inline(never)]
fn convert_by_blocks(conversion: &Conversion, chunk: &[u8], mut to: StripView<'_>) -> Option<()> {
    let (from_size, to_size) = (conversion.from_size() as u64, conversion.to_size() as u64);
    let largest = from_size.max(to_size) as usize;
    let mut blocks = [0; 2 * BLOCK_NBYTES];
    let mut large = Vec::new();
    // Of long text an element is a block.
    let (from, made) = if largest > BLOCK_NBYTES {
        large.resize(2 * largest, 0);
        large.split_at_mut(largest)
    } else {
        blocks.split_at_mut(BLOCK_NBYTES)
    };
    let at_once = (from.len() / largest) as u64;
    let mut block = |piece: &mut StripView<'_>| {
        let from = &mut from[..(piece.count * from_size) as usize];
        let made = &mut made[..(piece.count * to_size) as usize];
        let gathered = Strip { dst: 0, len: from_size, dst_step: from_size, ..**piece };
        StripView::alone(gathered, from, 1).copy(chunk)?;
        conversion.by_block(from, made);
        piece.read_from(0, to_size);
        piece.copy(made)
    };
    while to.count > at_once {
        block(&mut to.take_runs(at_once)?)?;
    }
    block(&mut to)
}

/// Convert elements that lie together; None, with part of them converted, where `to` is too short.
pub fn convert_all(conversion: &Conversion, from: &[u8], to: &mut [u8]) -> Option<()> {
    let (src_step, len) = (conversion.from_size() as u64, conversion.to_size() as u64);
    let count = from.len() as u64 / src_step;
    let all = Strip { src: 0, dst: 0, len, count, src_step, dst_step: len, backwards: false };
    convert(conversion, from, StripView::alone(all, to, 1))
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
