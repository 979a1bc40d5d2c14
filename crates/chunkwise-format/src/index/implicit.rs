//! Where do chunks lie that are all there, one behind the other?
//!
//! They are numbered as in the largest extent; those beyond the present one have their place too,
//! but are not there.

use super::numbered::Numbered;
use super::wanted::{ChunkRecord, Each, Wanted};
use crate::dataspace::Dims;
use crate::error::{FormatError, Structure};
use crate::fields::Place;
use crate::source::Source;

pub(super) fn read(
    source: &Source<'_>,
    address: u64,
    wanted: &Wanted<'_>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    let place = Place::new(Structure::ImplicitIndex, address);
    let numbered = Numbered::new(wanted);
    let nbytes = wanted.chunk_nbytes();
    let counts: Dims =
        wanted.shape.iter().zip(wanted.chunk).map(|(&n, &c)| n.div_ceil(c.max(1))).collect();
    let count = counts.iter().try_fold(1u64, |count, &n| count.checked_mul(n));
    let count = count.filter(|_| wanted.max_shape.iter().all(Option::is_some));
    let Some(count) = count else {
        return Err(place.wrong("it has more chunks than there are numbers"));
    };
    // All have room in a file; whether they are in it, who reads them finds out.
    source.require(Place::new(Structure::ImplicitIndex, 0), count.saturating_mul(nbytes))?;
    let mut scaled: Dims = counts.iter().map(|_| 0).collect();
    for _ in 0..count {
        if let Some(number) = numbered.number(&scaled) {
            let begin = address.saturating_add(number.saturating_mul(nbytes));
            let record = ChunkRecord {
                scaled: scaled.clone(),
                address: begin,
                stored_nbytes: nbytes,
                filter_mask: 0,
            };
            wanted.give(record, each)?;
        }
        // The next place in row-major order.
        for (at, count) in scaled.iter_mut().zip(&counts).rev() {
            *at = at.saturating_add(1);
            if *at < *count {
                break;
            }
            *at = 0;
        }
    }
    Ok(())
}
