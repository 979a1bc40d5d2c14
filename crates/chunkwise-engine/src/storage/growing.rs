//! How is a file read that another program makes longer meanwhile?

use std::sync::Arc;

use crate::{ReadError, Storage};

/// A storage whose bytes are copied as they are now, never had as memory: a map of the file would
/// end where the file ended when it was made.
pub struct GrowingStorage(pub Arc<dyn Storage>);

impl Storage for GrowingStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_at(address, out)
    }

    fn end(&self) -> u64 {
        self.0.end()
    }

    fn read_at_once(&self, address: u64, out: &mut [u8]) -> bool {
        self.0.read_at_once(address, out)
    }
}
