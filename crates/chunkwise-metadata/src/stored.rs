//! How are the bytes of a file read, of which metadata takes many small parts?

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_engine::{ReadError, Storage};
use chunkwise_format::Bytes;

/// Files up to this size are read whole; of others, parts of this size are kept.
const WHOLE_NBYTES: u64 = 1 << 20;
const PART_NBYTES: u64 = 16 << 10;
/// So many parts are kept.
const MOST_PARTS: usize = 1 << 10;

/// A file's bytes.
pub(crate) struct Stored {
    storage: Arc<dyn Storage>,
    nbytes: u64,
    whole: Option<Vec<u8>>,
    parts: Mutex<HashMap<u64, Arc<[u8]>>>,
}

impl Stored {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Result<Self, ReadError> {
        let nbytes = storage.end();
        let whole = match nbytes <= WHOLE_NBYTES {
            true => {
                let mut bytes = vec![0; usize::try_from(nbytes).unwrap_or_default()];
                storage.read_at(0, &mut bytes)?;
                Some(bytes)
            }
            false => None,
        };
        Ok(Self { storage, nbytes, whole, parts: Mutex::default() })
    }

    fn part(&self, number: u64) -> Result<Arc<[u8]>, ReadError> {
        let parts = || self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts().get(&number) {
            return Ok(Arc::clone(part));
        }
        let begin = number * PART_NBYTES;
        let len = PART_NBYTES.min(self.nbytes.saturating_sub(begin));
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        self.storage.read_at(begin, &mut bytes)?;
        let part: Arc<[u8]> = bytes.into();
        let mut parts = parts();
        if parts.len() >= MOST_PARTS {
            parts.clear();
        }
        parts.insert(number, Arc::clone(&part));
        Ok(part)
    }

    fn gathered(&self, position: u64, nbytes: usize) -> Result<Vec<u8>, ReadError> {
        let mut found = Vec::with_capacity(nbytes);
        if nbytes as u64 > PART_NBYTES {
            found.resize(nbytes, 0);
            self.storage.read_at(position, &mut found)?;
            return Ok(found);
        }
        while found.len() < nbytes {
            let at = position + found.len() as u64;
            let part = self.part(at / PART_NBYTES)?;
            let begin = usize::try_from(at % PART_NBYTES).unwrap_or(usize::MAX);
            // Short only at the end of the file, beyond which nothing is wanted.
            let Some(rest) = part.get(begin..).filter(|rest| !rest.is_empty()) else { break };
            found.extend_from_slice(&rest[..rest.len().min(nbytes - found.len())]);
        }
        Ok(found)
    }
}

impl Bytes for Stored {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        match &self.whole {
            Some(whole) => whole.read(position, nbytes),
            None => self.gathered(position, nbytes).map(Cow::Owned).map_err(|e| e.to_string()),
        }
    }

    fn nbytes(&self) -> u64 {
        self.nbytes
    }
}
