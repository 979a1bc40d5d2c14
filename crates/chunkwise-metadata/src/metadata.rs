//! What does a file say of its objects, and what does the engine read of it?

use std::fs::File;
use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{
    ChunkIndex, ChunkIndexBuilder, ChunkRecord, Chunks, Dataset, DatasetInfo, FileStorage, Layout,
    Storage,
};
use chunkwise_format::{Dataspace, FormatError, Link, Object, Value};
use chunkwise_select::{ChunkGrid, Dims};

use crate::stored::Stored;
use crate::types::type_of;

/// Of a dataset with more chunks, libhdf5's binding looks up those that are needed.
const MOST_CHUNKS: u64 = 1 << 16;

/// The metadata of a file.
pub struct Metadata {
    pub(crate) file: chunkwise_format::File<Stored>,
    pub(crate) storage: Arc<dyn Storage>,
}

impl Metadata {
    /// Of a local file; None where libhdf5 has to open it: it is being written, or is unusual.
    pub fn of_file(file: &File) -> Option<Self> {
        let made = Self::of_any_file(file)?;
        let superblock = made.file.superblock();
        let unusual = superblock.open_for_writing
            || superblock.open_for_swmr
            || superblock.driver.is_some()
            || superblock.base.checked_add(superblock.end)? > made.storage.end();
        (!unusual).then_some(made)
    }

    /// Of a local file, even if it is cut off, or was not closed; None without a superblock.
    pub fn of_any_file(file: &File) -> Option<Self> {
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let storage: Arc<dyn Storage> = FileStorage::reopening(file).ok()?;
        let stored = Stored::new(Arc::clone(&storage)).ok()?;
        let file = chunkwise_format::File::open(stored).ok()?;
        Some(Self { file, storage })
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

    /// A dataset that the engine reads, where its numbers are stored as in memory; None for libhdf5.
    pub fn dataset(&self, address: u64) -> Option<Arc<Dataset>> {
        let object = self.file.object(address).ok()?;
        let datatype = object.datatype().ok()??;
        // Text may have to be converted.
        type_of(&datatype).filter(|kind| !kind.contains(['S', 'U', 'O']))?;
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
                if address.is_some_and(|at| at.saturating_add(whole) > self.storage.end()) {
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
                if grid.len() > MOST_CHUNKS || chunked.element_nbytes != element_size as u64 {
                    return None;
                }
                Layout::Chunked {
                    unfiltered_partial_chunks: chunked.edges_unfiltered,
                    index: Chunks::from(self.chunks(&object, &grid).ok()??),
                    chunk,
                    pipeline,
                }
            }
            _ => return None,
        };
        let info = DatasetInfo { shape, element_size, fill: Some(fill), layout };
        Dataset::new(info, Arc::clone(&self.storage)).ok()
    }

    /// Where the chunks of a grid lie; None where libhdf5 has to say it.
    pub(crate) fn chunks(
        &self,
        object: &Object<'_>,
        grid: &ChunkGrid,
    ) -> Result<Option<ChunkIndex>, FormatError> {
        let (base, end) = (self.file.superblock().base, self.storage.end());
        let mut records = Vec::new();
        let mut sound = true;
        object.each_chunk(None, &mut |chunk| {
            let within = |(&at, (&n, &len)): (&u64, (&u64, &u64))| at < n.div_ceil(len);
            if !chunk.scaled.iter().zip(grid.shape().iter().zip(grid.chunk())).all(within) {
                return;
            }
            let origin: Dims =
                chunk.scaled.iter().zip(grid.chunk()).map(|(at, len)| at * len).collect();
            let address = base.saturating_add(chunk.address);
            let record = ChunkRecord {
                address,
                stored_nbytes: chunk.stored_nbytes,
                filter_mask: chunk.filter_mask,
            };
            // The other way has words for what is damaged.
            sound &= address.saturating_add(chunk.stored_nbytes) <= end;
            match grid.linear_index_of_origin(&origin) {
                Some(position) => records.push((position, record)),
                None => sound = false,
            }
        })?;
        records.sort_unstable_by_key(|&(position, _)| position);
        let builder = ChunkIndexBuilder::with_capacity(records.len() as u64);
        let (true, Ok(mut builder)) = (sound, builder) else { return Ok(None) };
        for (position, record) in records {
            if builder.push(position, record).is_err() {
                return Ok(None);
            }
        }
        Ok(builder.finish(grid.len()).ok())
    }
}
