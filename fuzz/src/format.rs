//! Is the metadata of any file read or refused, at the cost of the file?
//!
//! The input is a head and a file.  Changes break checksums first, so that, where the head says so,
//! each structure is read with the right one.  The head also has addresses at which objects are
//! read, whatever leads to them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chunkwise_format::{Bytes, Class, File, Filter, Object, Target, checksum};

use crate::memory::small;

/// Bytes before the file: flags, and addresses.
pub(crate) const HEAD_LEN: usize = 64;

pub(crate) fn check(input: &[u8]) {
    // An input that ends early says nothing.
    let Some((head, file)) = input.split_first_chunk::<HEAD_LEN>() else { return };
    small(file.len(), || {
        let numbers = head.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let numbers: Vec<u64> = numbers.collect();
        let sums = numbers.first().is_some_and(|flags| flags & 1 != 0);
        any_file(Sealing { file, sums }, numbers.get(1..).unwrap_or_default());
    });
}

fn any_file(bytes: Sealing<'_>, more: &[u64]) {
    let file = match File::open(bytes) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            return;
        }
    };
    let _ = file.extension();
    let mut waiting: Vec<u64> = more.to_vec();
    waiting.push(file.superblock().root);
    let mut seen: BTreeSet<u64> = waiting.iter().copied().collect();
    while let Some(address) = waiting.pop() {
        let Ok(object) = file.object(address) else { continue };
        any_object(&file, &object);
        for link in object.links().unwrap_or_default() {
            let Target::Hard(target) = link.target else { continue };
            if seen.insert(target) {
                waiting.push(target);
            }
        }
    }
}

/// Everything that can be read of an object.
fn any_object(file: &File<Sealing<'_>>, object: &Object<'_>) {
    let _ = (object.kind(), object.reference_count(), object.modification_time());
    let _ = (object.comment(), object.dataspace(), object.fill_value(), object.filters());
    let _ = (object.external_files(), object.virtual_mappings(), object.layout());
    let links = object.links();
    assert_eq!(links, object.links(), "listed twice, the links are not the same");
    for link in links.iter().flatten().step_by(7) {
        let _ = object.link(&link.name);
    }
    let attributes = object.attributes();
    for attribute in attributes.iter().flatten().step_by(7) {
        let _ = object.attribute(&attribute.name);
    }
    for attribute in attributes.iter().flatten() {
        let nbytes = attribute.datatype.nbytes.max(1) as usize;
        for value in attribute.value.chunks(nbytes).take(5) {
            match attribute.datatype.class {
                Class::Reference { kind } => drop(file.reference(kind, value)),
                _ => any_value(file, value),
            }
        }
    }
    let _ = object.datatype().map(|datatype| datatype.map(|found| found.leads_elsewhere()));
    if let Ok(Some((at, bytes))) = object.narrowed() {
        let Sealing { file: whole, sums } = *file.bytes();
        let mut other = whole.to_vec();
        let begin = (file.superblock().base + at) as usize;
        other[begin..begin + bytes.len()].copy_from_slice(&bytes);
        let other = File::open(Sealing { file: &other, sums });
        let layout = other.and_then(|other| other.object(object.address())?.layout());
        assert_eq!(layout, object.layout(), "narrow lengths are others");
    }
    if let Ok(chunks) = object.chunks() {
        let some = chunks.iter().step_by(1 + chunks.len() / 7);
        let places: BTreeSet<_> = some.map(|chunk| chunk.scaled.clone()).collect();
        let places: Vec<_> = places.into_iter().collect();
        if let Ok(found) = object.chunks_at(&places) {
            let listed = found.iter().all(|chunk| chunks.contains(chunk));
            assert!(listed, "a chunk that is looked up is not listed");
        }
    }
}

/// What a value of variable length leads to.
fn any_value(file: &File<Sealing<'_>>, value: &[u8]) {
    if let Ok(Some((_, collection, number))) = file.variable(value)
        && let Ok(collection) = file.collection(collection)
    {
        let _ = (collection.get(number).map(<[u8]>::len), collection.numbers().len());
    }
}

/// A file whose structures come with the right checksums, if they are wanted so.
#[derive(Clone, Copy)]
struct Sealing<'a> {
    file: &'a [u8],
    sums: bool,
}

impl Bytes for Sealing<'_> {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        /// Structures that end with a checksum, and all that is read before it.
        const SEALED: [&[u8; 4]; 14] = [
            b"OHDR", b"OCHK", b"BTHD", b"BTLF", b"BTIN", b"FRHP", b"FHIB", b"FAHD", b"FADB",
            b"EAHD", b"EAIB", b"EASB", b"EADB", b"SMTB",
        ];
        /// Bytes of a heap's flags, among which is whether its blocks of data have checksums.
        const HEAP_FLAGS: usize = 9;
        let bytes = self.file.read(position, nbytes)?;
        let sealed = SEALED.iter().any(|signature| bytes.starts_with(*signature));
        let superblock = bytes.starts_with(b"\x89HDF") && nbytes == 48;
        if !self.sums || !(sealed || superblock) {
            return Ok(bytes);
        }
        let mut bytes = bytes.into_owned();
        if bytes.starts_with(b"FRHP")
            && let Some(flags) = bytes.get_mut(HEAP_FLAGS)
        {
            *flags &= !2;
        }
        if let Some((content, sum)) = bytes.split_last_chunk_mut() {
            *sum = checksum(content).to_le_bytes();
        }
        Ok(Cow::Owned(bytes))
    }

    fn nbytes(&self) -> u64 {
        self.file.len() as u64
    }

    /// Any filter leaves the bytes as they are, or ends with a checksum.
    fn unfilter(&self, _: &[Filter], _: u32, stored: &[u8], nbytes: usize) -> Option<Vec<u8>> {
        stored.get(..nbytes).map(<[u8]>::to_vec)
    }
}
