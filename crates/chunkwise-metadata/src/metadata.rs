//! What does a file say of its objects, and what does the engine read of it?

use std::fs::File;
use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{ChunkIndex, Chunks, Dataset, DatasetInfo, FileStorage, Layout, Storage};
use chunkwise_format::{Bytes, Dataspace, FormatError, Link, Object, Value};
use chunkwise_select::{ChunkGrid, Dims};

use crate::index::StoredIndex;
use crate::on_demand::Checked;
use crate::stored::Stored;
use crate::types::type_of;

/// The metadata of a file.
pub struct Metadata {
    pub(crate) file: Arc<chunkwise_format::File<Stored>>,
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
        let stored = Stored::new(Arc::clone(&storage)).ok()?;
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
        if shape.is_empty() || !object.external_files().ok()?.is_empty() {
            return None;
        }
        let base = self.file.superblock().base;
        let fill = object.fill_value().ok()??;
        let fill = match (fill.written, fill.value) {
            (0 | 2, Value::Given(bytes)) if bytes.len() == element_size => bytes,
            (0 | 2, Value::Default) => vec![0; element_size],
            // Such elements are left as they are, or are an error.
            _ => return None,
        };
        let layout = match object.layout().ok()?? {
            chunkwise_format::Layout::Contiguous { address, nbytes } => {
                let whole = dataspace.count()?.checked_mul(element_size as u64)?;
                if nbytes.is_some_and(|nbytes| nbytes != whole) {
                    return None;
                }
                let address = match address {
                    Some(address) => Some(base.checked_add(address)?),
                    None => None,
                };
                if address.is_some_and(|at| at.saturating_add(whole) > self.end()) {
                    return None;
                }
                Layout::Contiguous { address }
            }
            chunkwise_format::Layout::Chunked(chunked) => {
                let filters = object.filters().ok()?;
                let filters = filters
                    .iter()
                    .map(|filter| Filter::from_hdf5(filter.number.into(), &filter.options));
                let pipeline = Pipeline::new(filters.collect::<Option<Vec<_>>>()?);
                let chunk = Dims::from_slice(&chunked.chunk);
                let grid = ChunkGrid::new(&shape, &chunk).ok()?;
                if chunked.element_nbytes != element_size as u64 {
                    return None;
                }
                let index = match grid.len() <= most_listed {
                    true => Chunks::from(self.chunks(&object, &grid).ok()??),
                    false => {
                        let of = (&grid, element_size as u64);
                        let checked = Checked::new(&self.storage, Some(self.end()), &pipeline, of);
                        let table = object.chunk_table().ok()??;
                        let file = Arc::clone(&self.file);
                        checked.on_demand(Box::new(StoredIndex::new(file, table, grid)))
                    }
                };
                let unfiltered_partial_chunks = chunked.edges_unfiltered;
                Layout::Chunked { chunk, pipeline, unfiltered_partial_chunks, index }
            }
            _ => return None,
        };
        let info = DatasetInfo { shape, element_size, fill: Some(fill), layout };
        Some((Dataset::new(info, Arc::clone(&self.storage)).ok()?, kind))
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
