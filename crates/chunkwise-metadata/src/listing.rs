//! Which objects does a file hold, each under its first name, and how are they stored?
//!
//! The order, and what counts as a second name, are those of `chunkwise.files.objects.walk`, which
//! asks libhdf5.  Of one object, what is unusual or damaged is left to libhdf5 (`Found::Left`); of
//! the file, whatever hides which objects there are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chunkwise_engine::{ChunkCensus, census_of_index};
use chunkwise_format::{
    Attribute, Charset, ChunkIndex, Class, Dataspace, Datatype, FillValue, FormatError, Kind,
    Layout, Object, Target,
};
use chunkwise_select::{ChunkGrid, Dims};

use crate::metadata::Metadata;
use crate::types::trimmed;
use crate::values::Values;

/// Bytes of all paths together: of a longer list, libhdf5 gives one after the other.
const MOST_PATHS_NBYTES: usize = 256 << 20;

/// A name in a file.
pub struct Entry {
    /// The path, as text.
    pub path: String,
    /// Groups above it.
    pub depth: usize,
    /// What has that name.
    pub found: Found,
}

/// What has a name.
pub enum Found {
    /// A group, a dataset or a committed type, by its address.
    Object(u64, Shown),
    /// An object that was listed before, by the path of that.
    Again(Arc<str>),
    /// A soft link, and its path.
    Soft(String),
    /// A link into another file: the file, and the path there.
    External(String, String),
    /// A link of another kind.
    Other,
}

/// What is known of an object.
pub enum Shown {
    /// A group, and the names of its attributes, in their order.
    Group(Vec<String>),
    /// A committed type.
    Datatype(Vec<String>),
    /// A dataset.
    Dataset(Vec<String>, Box<Facts>),
    /// Only libhdf5 says it.
    Left(Kind),
}

/// How a dataset is stored.
pub struct Facts {
    /// The message of its type.
    pub datatype: Vec<u8>,
    /// None of a null dataspace.
    pub shape: Option<Dims>,
    /// As far as it may grow; None where there is no end.
    pub max_shape: Vec<Option<u64>>,
    /// Where its data is.
    pub stored: StoredFacts,
    /// Numbers and options of its filters.
    pub filters: Vec<(u16, Vec<u32>)>,
    /// What was not written.
    pub fill: FillValue,
    /// The address of the last scale of each dimension.
    pub scales: Vec<Option<u64>>,
    /// Whether it is a scale.
    pub is_scale: bool,
}

/// Where a dataset's data is.
pub enum StoredFacts {
    /// In the header, or in one piece: this many bytes.
    Compact(u64),
    /// In one piece: this many bytes.
    Contiguous(u64),
    /// In chunks of a shape; with their count, if they were to be counted.
    Chunked(Dims, Option<ChunkCensus>),
}

impl Metadata {
    /// All names in a file, and the count of each dataset's chunks; None where only libhdf5 can say
    /// which names there are.
    #[must_use]
    pub fn listing(&self) -> Option<Vec<Entry>> {
        self.entries(true)
    }

    /// As `listing` gives them; no index of chunks is read unless they are counted.
    pub(crate) fn entries(&self, counted: bool) -> Option<Vec<Entry>> {
        if !self.is_whole() {
            return None;
        }
        let mut listing = Listing {
            metadata: self,
            counted,
            values: Values::new(self),
            seen: HashMap::new(),
            known: HashSet::new(),
            led: Vec::new(),
            entries: Vec::new(),
            nbytes: 0,
        };
        listing.walk()?;
        // What only references lead to has a name that libhdf5's walk finds.
        let Listing { known, led, entries, .. } = listing;
        led.iter().all(|address| known.contains(address)).then_some(entries)
    }

    /// Whether HDF5 reads all of the file as it is read here.
    pub(crate) fn is_whole(&self) -> bool {
        // Of shorter ones, HDF5 2.0 takes what is unlimited as a number.
        const LENGTH_NBYTES: u8 = 8;
        let superblock = self.file.superblock();
        // What lies behind the stated end, HDF5 refuses to read.
        let end = superblock.base.checked_add(superblock.end);
        superblock.length_nbytes == LENGTH_NBYTES && end == Some(self.storage.end())
    }
}

struct Listing<'f> {
    metadata: &'f Metadata,
    counted: bool,
    values: Values<'f>,
    /// Paths of objects that may come again.
    seen: HashMap<u64, Arc<str>>,
    known: HashSet<u64>,
    /// Where references and committed types lead.
    led: Vec<u64>,
    entries: Vec<Entry>,
    nbytes: usize,
}

/// Members of a group that are to be visited, the last first.
type Waiting = Vec<(String, usize, Target)>;

impl Listing<'_> {
    fn walk(&mut self) -> Option<()> {
        let mut waiting: Waiting = vec![("/".into(), 0, Target::Hard(self.metadata.root()))];
        while let Some((path, depth, target)) = waiting.pop() {
            self.nbytes += path.len();
            if self.nbytes > MOST_PATHS_NBYTES {
                return None;
            }
            let found = match target {
                Target::Hard(address) => self.object(address, &path, depth, &mut waiting)?,
                Target::Soft(to) => Found::Soft(String::from_utf8(to).ok()?),
                Target::External { file, path } => {
                    Found::External(String::from_utf8(file).ok()?, String::from_utf8(path).ok()?)
                }
                Target::Other { .. } => Found::Other,
            };
            self.entries.push(Entry { path, depth, found });
        }
        Some(())
    }

    fn object(
        &mut self,
        address: u64,
        path: &str,
        depth: usize,
        waiting: &mut Waiting,
    ) -> Option<Found> {
        if let Some(first) = self.seen.get(&address) {
            return Some(Found::Again(Arc::clone(first)));
        }
        let object = self.metadata.object(address).ok()?;
        let kind = object.kind();
        let count = object.reference_count().ok()?;
        if kind == Kind::Group || count > 1 {
            self.seen.insert(address, path.into());
        }
        self.known.insert(address);
        let attributes = object.attributes().ok();
        let all = attributes.as_deref().unwrap_or_default();
        let shown = match (kind, attributes.as_ref().and_then(|_| names_of(all))) {
            (Kind::Unknown, _) => return None,
            (Kind::Group, Some(names)) => Shown::Group(names),
            (Kind::Datatype, Some(names)) => Shown::Datatype(names),
            (Kind::Dataset, Some(names)) => match self.facts(&object, all) {
                Some(facts) => Shown::Dataset(names, Box::new(facts)),
                None => Shown::Left(kind),
            },
            (_, None) => Shown::Left(kind),
        };
        for attribute in all {
            self.lead_of(attribute)?;
        }
        if kind != Kind::Group {
            // Elements may lead anywhere.
            let datatype = object.datatype().ok()??;
            if holds_references(&datatype) {
                return None;
            }
            self.led.extend(datatype.committed);
        } else {
            let above = if path == "/" { "" } else { path };
            let members = self.metadata.links(&object).ok()?;
            let members = members.into_iter().rev().map(|link| {
                let name = String::from_utf8(link.name).ok().filter(|name| !name.contains('\0'))?;
                Some((format!("{above}/{name}"), depth + 1, link.target))
            });
            waiting.extend(members.collect::<Option<Vec<_>>>()?);
        }
        Some(Found::Object(address, shown))
    }

    /// Note where an attribute leads; None where that is not known.
    fn lead_of(&mut self, attribute: &Attribute) -> Option<()> {
        let Attribute { datatype, value, .. } = attribute;
        self.led.extend(datatype.committed);
        if !holds_references(datatype) {
            return Some(());
        }
        let nbytes = datatype.nbytes.max(1) as usize;
        let values = value.chunks_exact(nbytes);
        match &datatype.class {
            Class::Reference { kind: 0 } => {
                for value in values {
                    self.led.extend(self.values.reference(value).ok()?);
                }
            }
            Class::Sequence(base) if base.class == (Class::Reference { kind: 0 }) => {
                for value in values {
                    self.led.extend(self.values.references(value).ok()?.into_iter().flatten());
                }
            }
            Class::Compound(members) => {
                let places = self.values.places(members, value, nbytes)?;
                self.led.extend(places.into_iter().map(|(address, _)| address));
            }
            _ => return None,
        }
        Some(())
    }

    /// How a dataset is stored; None where libhdf5 has to say it.
    fn facts(&self, object: &Object<'_>, attributes: &[Attribute]) -> Option<Facts> {
        let datatype = object.datatype().ok()??;
        let dataspace = object.dataspace().ok()??;
        let filters = object.filters().ok()?;
        // HDF5 2.0 refuses wide lengths of chunks, and has to say so.
        if !object.external_files().ok()?.is_empty() || object.narrowed().ok()?.is_some() {
            return None;
        }
        let is_null = dataspace == Dataspace::Null;
        let shape = Dims::from_slice(dataspace.shape());
        let whole = dataspace.count()?.checked_mul(datatype.nbytes.into())?;
        let stored = match object.layout().ok()?? {
            Layout::Compact(bytes) if bytes.len() as u64 == whole => StoredFacts::Compact(whole),
            Layout::Contiguous { address: None, nbytes: Some(_) } => StoredFacts::Contiguous(0),
            Layout::Contiguous { address: Some(at), nbytes: Some(nbytes) } => {
                let begin = self.metadata.file.superblock().base.checked_add(at)?;
                // libhdf5 has words for what is damaged.
                if nbytes != whole || begin.checked_add(nbytes)? > self.metadata.storage.end() {
                    return None;
                }
                StoredFacts::Contiguous(nbytes)
            }
            Layout::Chunked(chunked) if !is_null => {
                if chunked.element_nbytes != u64::from(datatype.nbytes) {
                    return None;
                }
                let chunk = Dims::from_slice(&chunked.chunk);
                let grid = ChunkGrid::new(&shape, &chunk).ok()?;
                let count = || {
                    let index = self.metadata.chunks(object, &grid).ok()??;
                    let (filtered, kind) = (!filters.is_empty(), number_of(chunked.index));
                    let partial = chunked.edges_unfiltered;
                    Some(census_of_index(&index, &grid, filtered, partial, Some(kind)))
                };
                let census = if self.counted { Some(count()?) } else { None };
                StoredFacts::Chunked(chunk, census)
            }
            _ => return None,
        };
        Some(Facts {
            datatype: object.datatype_message().ok()??,
            scales: self.scales(attributes, shape.len()).ok()?,
            is_scale: attributes.iter().any(says_scale),
            max_shape: dataspace.max_shape().to_vec(),
            shape: (!is_null).then_some(shape),
            stored,
            filters: filters.into_iter().map(|filter| (filter.number, filter.options)).collect(),
            fill: object.fill_value().ok()??,
        })
    }

    fn scales(
        &self,
        attributes: &[Attribute],
        rank: usize,
    ) -> Result<Vec<Option<u64>>, FormatError> {
        let found = attributes.iter().find(|attribute| attribute.name == b"DIMENSION_LIST");
        let Some(Attribute { datatype, dataspace, value, .. }) = found else {
            return Ok(Vec::new());
        };
        let listed = matches!(&datatype.class, Class::Sequence(base)
            if base.class == (Class::Reference { kind: 0 }));
        if !listed || dataspace.shape() != [rank as u64] || rank == 0 {
            return Ok(Vec::new());
        }
        let each = value.chunks_exact(datatype.nbytes.max(1) as usize);
        each.map(|value| Ok(self.values.references(value)?.last().copied().flatten())).collect()
    }
}

/// `H5D_chunk_index_t`.
fn number_of(index: ChunkIndex) -> i32 {
    match index {
        ChunkIndex::BTree1(_) => 0,
        ChunkIndex::Single { .. } => 1,
        ChunkIndex::Implicit(_) => 2,
        ChunkIndex::FixedArray(_) => 3,
        ChunkIndex::ExtensibleArray(_) => 4,
        ChunkIndex::BTree2(_) => 5,
    }
}

/// The names of attributes; None where one is not UTF-8.
fn names_of(attributes: &[Attribute]) -> Option<Vec<String>> {
    attributes.iter().map(|one| str::from_utf8(&one.name).ok().map(Into::into)).collect()
}

/// Whether this attribute makes its dataset a dimension scale.
fn says_scale(attribute: &Attribute) -> bool {
    const MOST_NBYTES: u32 = 64;
    let Attribute { name, datatype, dataspace, value, .. } = attribute;
    let Class::Text(text) = &datatype.class else { return false };
    name == b"CLASS"
        // h5py knows no others.
        && !matches!(text.charset, Charset::Other(_))
        && datatype.nbytes <= MOST_NBYTES
        && *dataspace != Dataspace::Null
        && dataspace.count() == Some(1)
        && trimmed(text, value) == b"DIMENSION_SCALE"
}

pub(crate) fn holds_references(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Reference { .. } => true,
        Class::Compound(members) => members.iter().any(|member| holds_references(&member.datatype)),
        Class::Sequence(base) | Class::Array { base, .. } => holds_references(base),
        _ => false,
    }
}
