//! How do the chunks of a dataset read as references, in the words of Kerchunk's JSON?

use std::io::Write as _;

use chunkwise_select::ChunkGrid;

use crate::ChunkIndex;

/// Append `"PREFIX0.2.1":[URL,ADDRESS,BYTES]`, with a comma and an end of line behind it, for
/// `count` of the written chunks, from the one with number `begin` on.
///
/// `prefix` and `url` are JSON: the first without quotes, the second with them.
pub fn write_references(
    out: &mut Vec<u8>,
    (grid, index): (&ChunkGrid, &ChunkIndex),
    (begin, count): (usize, usize),
    prefix: &[u8],
    url: &[u8],
) {
    for position in index.positions().skip(begin).take(count) {
        let Some(record) = index.get(position) else { continue };
        out.push(b'"');
        out.extend_from_slice(prefix);
        for (d, place) in grid.chunk_index(position).iter().enumerate() {
            // Writing to memory does not fail.
            let _ = if d == 0 { write!(out, "{place}") } else { write!(out, ".{place}") };
        }
        out.extend_from_slice(b"\":[");
        out.extend_from_slice(url);
        let _ = writeln!(out, ",{},{}],", record.address, record.stored_nbytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkIndexBuilder, ChunkRecord};

    #[test]
    fn each_written_chunk_is_a_line() {
        let grid = ChunkGrid::new(&[4, 5], &[2, 2]).unwrap();
        let mut builder = ChunkIndexBuilder::default();
        for position in [0, 4, 5] {
            let record = ChunkRecord { address: 100 + position, stored_nbytes: 7, filter_mask: 0 };
            builder.push(position, record).unwrap();
        }
        let index = builder.finish(grid.len()).unwrap();
        let mut out = Vec::new();
        write_references(&mut out, (&grid, &index), (1, 9), b"t/", b"\"u\"");
        assert_eq!(out, b"\"t/1.1\":[\"u\",104,7],\n\"t/1.2\":[\"u\",105,7],\n");
    }
}
