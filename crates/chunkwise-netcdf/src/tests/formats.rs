//! Files of netCDF-3 hold what is written, and nothing that they cannot hold is tried.

use std::path::Path;

use super::put::{NUMBERS, all, assert_reads_back, usual, write};
use super::writing::{Scratch, libraries};
use crate::{ChunkCache, Format, NewVariable, Number};
use chunkwise_measure::{BlockWalk, Order, Walk};

/// `usual`, as netCDF-3 can have it.
fn plain(file: &str, format: Format) -> NewVariable {
    NewVariable { format, chunk: None, filters: vec![], ..usual(file) }
}

#[test]
fn formats_of_netcdf3_are_written_and_read() {
    let formats = [
        (Format::Classic, b"CDF\x01"),
        (Format::Offset64Bit, b"CDF\x02"),
        (Format::Data64Bit, b"CDF\x05"),
        (Format::NetCdf4, b"\x89HDF"),
    ];
    for library in libraries() {
        let scratch = Scratch::new();
        for (format, magic) in formats {
            for (name, fill) in NUMBERS.iter().zip([true, false].into_iter().cycle()) {
                let number = Number::named(name).unwrap();
                let file = scratch.path("any.nc");
                let new = NewVariable { number, fill, ..plain(&file, format) };
                let walk = BlockWalk::ordered(&new.shape, &[2, 3], Order::Random { seed: 1 }, None);
                let walk = Walk::Blocks(Box::new(walk.unwrap()));
                let old = matches!(format, Format::Classic | Format::Offset64Bit);
                if old && ["u1", "u2", "u4", "i8", "u8"].contains(name) {
                    let refused = write(&library, &new, &walk).unwrap_err();
                    assert!(refused.to_string().contains("no numbers of this type"), "{refused}");
                    assert!(!Path::new(&file).exists());
                    continue;
                }
                let written = write(&library, &new, &walk).unwrap();
                assert_eq!(written.chunk_cache, None);
                assert_eq!(&std::fs::read(&file).unwrap()[..4], magic);
                assert_reads_back(&library, &new, &written, &walk);
                std::fs::remove_file(&file).unwrap();
            }
        }
    }
}

#[test]
fn netcdf3_has_neither_groups_nor_chunks() {
    for library in libraries() {
        let scratch = Scratch::new();
        let file = scratch.path("refused.nc");
        let new = plain(&file, Format::Classic);
        let cache = Some(ChunkCache { nbytes: 1, nslots: 1, w0: 0.5 });
        for (new, reason) in [
            (NewVariable { name: "/group/values".to_string(), ..new.clone() }, "no groups"),
            (NewVariable { chunk: Some(vec![2, 2]), ..new.clone() }, "no chunks"),
            (NewVariable { cache, ..new.clone() }, "no chunks"),
        ] {
            let refused = write(&library, &new, &all(&new.shape)).unwrap_err();
            assert!(refused.to_string().contains(reason), "{refused}");
            assert!(!Path::new(&file).exists());
        }
    }
}
