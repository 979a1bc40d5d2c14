//! How are chunks written to a file whose index somebody else keeps?
//!
//! In two steps: the process that has the file open in libhdf5 gives each chunk its place, and the bytes
//! are written there by the process that encoded them, which may be another.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_select::Dims;

use crate::index::ChunkRecord;
use crate::platform::{read_exact_at, write_all_at};
use crate::write::{ChunkStore, CommitError, Committer, EncodedChunk};

/// Keeps the index of a dataset: where its chunks lie, and not what they hold.
pub trait ChunkPlaces: Send {
    /// Give each of these chunks a place for as many bytes as it has, and the index its filter
    /// mask; a former place is given up.  Addresses in the chunks' order.
    ///
    /// # Errors
    /// When the index cannot be written.
    fn allocate(&mut self, chunks: &[EncodedChunk]) -> Result<Vec<u64>, CommitError>;

    /// Where the chunks that begin at these origins lie; None for those that were never written.
    ///
    /// # Errors
    /// When nobody answers.
    fn find(&mut self, chunk_origins: &[Dims]) -> Result<Vec<Option<ChunkRecord>>, String>;
}

impl ChunkPlaces for Box<dyn ChunkPlaces> {
    fn allocate(&mut self, chunks: &[EncodedChunk]) -> Result<Vec<u64>, CommitError> {
        (**self).allocate(chunks)
    }

    fn find(&mut self, chunk_origins: &[Dims]) -> Result<Vec<Option<ChunkRecord>>, String> {
        (**self).find(chunk_origins)
    }
}

/// Writes chunks to the places that it is given.
pub struct PlacedChunks<P> {
    places: P,
    file: Arc<File>,
}

impl<P: ChunkPlaces> PlacedChunks<P> {
    /// To `file`, open for reading and writing, at the addresses that `places` gives.
    pub fn new(places: P, file: Arc<File>) -> Self {
        Self { places, file }
    }
}

impl<P: ChunkPlaces> Committer for PlacedChunks<P> {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        let addresses = self.places.allocate(chunks)?;
        let failed = |chunk: &EncodedChunk, message: String| CommitError {
            chunk_origin: chunk.chunk_origin.clone(),
            stored_nbytes: chunk.bytes.len() as u64,
            message,
        };
        if let Some(first) = chunks.first().filter(|_| addresses.len() != chunks.len()) {
            let (expected, given) = (chunks.len(), addresses.len());
            let message = format!("{given} places were given for {expected} chunks");
            return Err(failed(first, message));
        }
        for (chunk, address) in chunks.iter().zip(addresses) {
            let written = write_all_at(&self.file, &chunk.bytes, address);
            written.map_err(|error| failed(chunk, error.to_string()))?;
        }
        Ok(())
    }
}

impl<P: ChunkPlaces> ChunkStore for PlacedChunks<P> {
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool> {
        // Where nobody answers, the next commit says so.
        let found = self.places.find(chunk_origins).unwrap_or_default();
        let mut stored: Vec<bool> = found.iter().map(Option::is_some).collect();
        stored.resize(chunk_origins.len(), false);
        stored
    }

    fn stored(&mut self, chunk_origin: &[u64], bytes: &mut Vec<u8>) -> Result<Option<u32>, String> {
        let found = self.places.find(&[chunk_origin.into()])?;
        let Some(Some(record)) = found.first() else { return Ok(None) };
        let nbytes = usize::try_from(record.stored_nbytes).map_err(|error| error.to_string())?;
        chunkwise_codec::resize(bytes, nbytes).map_err(|error| error.to_string())?;
        let read = read_exact_at(&self.file, bytes, record.address);
        read.map_err(|error| error.to_string())?;
        Ok(Some(record.filter_mask))
    }
}

/// Encoded chunks that nobody has given a place yet.
#[derive(Debug, Clone, Default)]
pub struct KeptChunks(Arc<Mutex<Vec<EncodedChunk>>>);

impl KeptChunks {
    /// Take all that were kept, in the order in which they were committed.
    pub fn take(&self) -> Vec<EncodedChunk> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Committer for KeptChunks {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(chunks);
        Ok(())
    }
}

impl ChunkStore for KeptChunks {
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool> {
        vec![false; chunk_origins.len()]
    }

    fn stored(&mut self, _: &[u64], _: &mut Vec<u8>) -> Result<Option<u32>, String> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Gives places one after another.
    #[derive(Default)]
    struct InMemory {
        end: u64,
        held: HashMap<Dims, ChunkRecord>,
        short: bool,
    }

    impl ChunkPlaces for InMemory {
        fn allocate(&mut self, chunks: &[EncodedChunk]) -> Result<Vec<u64>, CommitError> {
            let given = chunks.iter().skip(usize::from(self.short)).map(|chunk| {
                let (address, stored_nbytes) = (self.end, chunk.bytes.len() as u64);
                let filter_mask = chunk.filter_mask;
                let record = ChunkRecord { address, stored_nbytes, filter_mask };
                self.held.insert(chunk.chunk_origin.clone(), record);
                self.end += stored_nbytes;
                address
            });
            Ok(given.collect())
        }

        fn find(&mut self, chunk_origins: &[Dims]) -> Result<Vec<Option<ChunkRecord>>, String> {
            Ok(chunk_origins.iter().map(|at| self.held.get(at).copied()).collect())
        }
    }

    /// A file without a name.
    fn file() -> File {
        let name =
            format!("chunkwise-placed-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    }

    fn chunk(at: u64, bytes: &[u8]) -> EncodedChunk {
        EncodedChunk {
            chunk_origin: Dims::from_slice(&[at]),
            filter_mask: 1,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn bytes_are_where_their_place_is() {
        let mut placed = PlacedChunks::new(InMemory::default(), Arc::new(file()));
        placed.commit(&[chunk(0, b"one"), chunk(9, b"and another")]).unwrap();
        placed.commit(&[chunk(3, b"")]).unwrap();
        let mut bytes = vec![7; 40];
        assert_eq!(placed.stored(&[9], &mut bytes), Ok(Some(1)));
        assert_eq!(bytes, b"and another");
        assert_eq!(placed.stored(&[6], &mut bytes), Ok(None));
        let origins = [0, 6, 9].map(|at| Dims::from_slice(&[at]));
        assert_eq!(placed.are_stored(&origins), [true, false, true]);
    }

    #[test]
    fn a_place_too_few_is_an_error() {
        let places = InMemory { short: true, ..InMemory::default() };
        let mut placed = PlacedChunks::new(places, Arc::new(file()));
        let error = placed.commit(&[chunk(0, b"one"), chunk(9, b"two")]).unwrap_err();
        assert!(error.message.contains("1 places"), "{error}");
    }
}
