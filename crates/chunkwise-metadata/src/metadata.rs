//! What does a file say of its objects, and what does the engine read of it?

use std::fs::File;
use std::sync::Arc;

use chunkwise_codec::Pipeline;
use chunkwise_engine::{ChunkIndex, Chunks, Dataset, FileStorage, Storage};
use chunkwise_format::{Bytes, Dataspace, FormatError, Link, Object, Value};
use chunkwise_select::{ChunkGrid, Dims};

use crate::cached_bytes::CachedBytes;
use crate::index::StoredIndex;
use crate::on_demand::Checked;
use crate::readable::{Data, Description, Fill, Left, pipeline_of, readable};
use crate::types::type_of;

/// The metadata of a file.
pub struct Metadata {
    pub(crate) file: Arc<chunkwise_format::File<CachedBytes>>,
    pub(crate) storage: Arc<dyn Storage>,
}

impl Metadata {
    /// Of a local file; None where libhdf5 has to open it: it is being written, or is unusual.
    pub fn of_file(file: &File) -> Option<Self> {
        Self::of_any_file(file)?.usual()
    }

    /// None where libhdf5 has to open it.
    fn usual(self) -> Option<Self> {
        let superblock = self.file.superblock();
        let unusual = superblock.open_for_writing
            || superblock.open_for_swmr
            || superblock.driver.is_some()
            || superblock.base.checked_add(superblock.end)? > self.file.bytes().nbytes();
        (!unusual).then_some(self)
    }

    /// Of a local file, even if it is cut off, or was not closed; None without a superblock.
    pub fn of_any_file(file: &File) -> Option<Self> {
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        Self::of_any_storage(FileStorage::reopening(file).ok()?)
    }

    /// Of a file with this storage, which may be far away; None as of [`Metadata::of_file`].
    pub fn of_storage(storage: Arc<dyn Storage>) -> Option<Self> {
        Self::of_any_storage(storage)?.usual()
    }

    fn of_any_storage(storage: Arc<dyn Storage>) -> Option<Self> {
        let stored = CachedBytes::new(Arc::clone(&storage)).ok()?;
        let file = chunkwise_format::File::open(stored).ok()?;
        Some(Self { file: Arc::new(file), storage })
    }

    /// The address of the root group.
    pub fn root(&self) -> u64 {
        self.file.superblock().root
    }

    /// The object whose header is at an address.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn object(&self, address: u64) -> Result<Object<'_>, FormatError> {
        self.file.object(address)
    }

    /// The links of a group, in the order of h5py.
    ///
    /// # Errors
    /// What holds them is damaged.
    pub fn links(&self, group: &Object<'_>) -> Result<Vec<Link>, FormatError> {
        self.file.bytes().together(&|| drop(group.readable_links()));
        let mut links = group.links()?;
        if group.tracks_links()? {
            links.sort_by_key(|link| link.creation_order);
        }
        Ok(links)
    }

    /// The shape of a dataset; None of what has none.
    ///
    /// # Errors
    /// There is no object, or it is damaged.
    pub fn shape(&self, address: u64) -> Result<Option<Dims>, FormatError> {
        let found = self.object(address)?.dataspace()?;
        Ok(found
            .filter(|space| *space != Dataspace::Null)
            .map(|space| Dims::from_slice(space.shape())))
    }

    /// A dataset that the engine reads, and its type as `type_of` has it, where its numbers are
    /// stored as in memory; None for libhdf5.  Of more chunks than these, those are looked up that
    /// are read.
    pub fn dataset(&self, address: u64, most_listed: u64) -> Option<(Arc<Dataset>, String)> {
        let object = self.file.object(address).ok()?;
        let datatype = object.datatype().ok()??;
        // Text may have to be converted.
        let kind = type_of(&datatype).filter(|kind| !kind.contains(['S', 'U', 'O']))?;
        let element_size = datatype.nbytes as usize;
        let dataspace = object.dataspace().ok()??;
        let shape = Dims::from_slice(dataspace.shape());
        if shape.is_empty() {
            return None;
        }
        let stated = object.fill_value().ok()??;
        let is_defined = stated.value != Value::Undefined;
        let fill = Fill::of(stated.written.into(), is_defined, || match stated.value {
            Value::Given(bytes) if bytes.len() == element_size => Ok(bytes),
            Value::Given(_) => Err(()),
            _ => Ok(vec![0; element_size]),
        });
        let data = match object.layout().ok()?? {
            _ if !object.external_files().ok()?.is_empty() => Data::External,
            chunkwise_format::Layout::Compact(_) => Data::Compact,
            chunkwise_format::Layout::Virtual { .. } => Data::Virtual,
            chunkwise_format::Layout::Contiguous { address, nbytes } => {
                let whole = dataspace.count()?.checked_mul(element_size as u64)?;
                let base = self.file.superblock().base;
                let begin = address.map(|address| base.saturating_add(address));
                let is_cut = begin.is_some_and(|at| at.saturating_add(whole) > self.end());
                if is_cut || nbytes.is_some_and(|nbytes| nbytes != whole) {
                    return None;
                }
                Data::Contiguous(begin)
            }
            chunkwise_format::Layout::Chunked(chunked) => {
                if chunked.element_nbytes != element_size as u64 {
                    return None;
                }
                let filters = object.filters().ok()?;
                let filters = filters
                    .iter()
                    .map(|filter| (filter.number.into(), &filter.options[..], String::new()));
                Data::Chunked {
                    chunk: Dims::from_slice(&chunked.chunk),
                    pipeline: pipeline_of(filters),
                    unfiltered_partial_chunks: chunked.edges_unfiltered,
                }
            }
        };
        let description = Description { shape, element_size, fill: fill.ok()?, data };
        // libhdf5 has words for what is damaged.
        let damaged = || Left(String::new());
        let chunks = |grid: ChunkGrid, pipeline: &Pipeline| {
            if grid.len() <= most_listed {
                let listed = self.chunks(&object, &grid).ok().flatten();
                return listed.map(Chunks::from).ok_or_else(damaged);
            }
            let table = object.chunk_table().ok().flatten().ok_or_else(damaged)?;
            let of = (&grid, element_size as u64);
            let checked = Checked::new(&self.storage, Some(self.end()), pipeline, of);
            let file = Arc::clone(&self.file);
            Ok(checked.on_demand(Box::new(StoredIndex::new(file, table, grid))))
        };
        Some((readable(description, Arc::clone(&self.storage), chunks).ok()?, kind))
    }

    /// Where the file's data ends, user block included: libhdf5 reads nothing beyond.
    fn end(&self) -> u64 {
        let superblock = self.file.superblock();
        superblock.base.saturating_add(superblock.end).min(self.file.bytes().nbytes())
    }

    /// Where the chunks of a grid lie; None where libhdf5 has to say it.
    pub(crate) fn chunks(
        &self,
        object: &Object<'_>,
        grid: &ChunkGrid,
    ) -> Result<Option<ChunkIndex>, FormatError> {
        let Some(table) = object.chunk_table()? else { return Ok(None) };
        let listed = StoredIndex::new(Arc::clone(&self.file), table, grid.clone()).list();
        // The other way has words for what is damaged.
        Ok(listed.ok().filter(|index| index.furthest() <= self.end()))
    }
}
