//! Which encoders were chosen for the datasets of a run so far?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_codec::Choices;

/// Choices by what makes datasets alike: their type, filters and chunk shape.
#[derive(Debug, Default)]
pub struct Encoders(Mutex<HashMap<Vec<u8>, Arc<Choices>>>);

impl Encoders {
    /// What was chosen for datasets like that.
    pub fn of(&self, likeness: &[u8]) -> Arc<Choices> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(likeness.to_vec()).or_default())
    }
}
