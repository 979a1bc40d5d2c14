//! Which structures of an object are not as the format says?

use chunkwise_format::{FormatError, Kind};

use crate::metadata::Metadata;

impl Metadata {
    /// What is wrong with the header of an object and with what it leads to, but its values: each
    /// error names a structure, its address, and the object.
    #[must_use]
    pub fn damage(&self, address: u64) -> Vec<FormatError> {
        let object = match self.object(address) {
            Ok(object) => object,
            Err(error) => return vec![error],
        };
        let (_, mut errors) = object.readable_attributes();
        if object.kind() == Kind::Group {
            errors.extend(object.readable_links().1);
        }
        let parts = [
            object.datatype().err(),
            object.dataspace().err(),
            object.layout().err(),
            object.fill_value().err(),
            object.filters().err(),
            object.external_files().err(),
        ];
        errors.extend(parts.into_iter().flatten());
        errors
    }
}
