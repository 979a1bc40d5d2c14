//! What should be written, and can netCDF-C make it?

use std::fmt;

use crate::{ChunkCache, Format, NetCdfError, Number};

pub(crate) const DEFLATE: u32 = 1;
pub(crate) const SHUFFLE: u32 = 2;
pub(crate) const FLETCHER32: u32 = 3;
pub(crate) const SZIP: u32 = 4;
const SCALEOFFSET: u32 = 6;

/// A filter, as `H5Pset_filter` takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// HDF5's number for it.
    pub id: u32,
    /// Its options.
    pub cd_values: Vec<u32>,
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            DEFLATE => f.write_str("deflate"),
            SHUFFLE => f.write_str("shuffle"),
            FLETCHER32 => f.write_str("fletcher32"),
            SZIP => f.write_str("szip"),
            SCALEOFFSET => f.write_str("scaleoffset"),
            id => write!(f, "filter-{id}"),
        }
    }
}

/// A file to be created, with one variable.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVariable {
    /// The file, which must not exist.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// The variable's HDF5 path, from the root group with or without its slash; groups on
    /// the way are made, which netCDF-3 has not.
    pub name: String,
    /// Elements in each dimension, slowest first.
    pub shape: Vec<u64>,
    /// Type of the elements.
    pub number: Number,
    /// Whether they are stored with the most significant byte first; netCDF-3 always does.
    pub big_endian: bool,
    /// Elements of a chunk in each dimension; None is contiguous.
    pub chunk: Option<Vec<u64>>,
    /// Filters in the order in which a chunk passes them when it is written.
    pub filters: Vec<Filter>,
    /// None is netCDF-C's own.
    pub cache: Option<ChunkCache>,
    /// Whether what is allocated is filled before it is written, as netCDF-C does by
    /// default; else elements that are never written hold anything (`NC_NOFILL`).
    pub fill: bool,
}

impl NewVariable {
    /// The groups on the way to the variable, and its own name.
    pub(crate) fn names(&self) -> (Vec<&str>, &str) {
        let (groups, name) = self.name.rsplit_once('/').unwrap_or(("", &self.name));
        (groups.split('/').filter(|part| !part.is_empty()).collect(), name)
    }

    /// Nothing, or why netCDF-C could not make this variable from `data_nbytes` bytes; what
    /// depends on the library's version or its plugins is not known here.
    pub(crate) fn check(&self, data_nbytes: usize) -> Result<(), NetCdfError> {
        self.wrong(data_nbytes).map_or(Ok(()), |reason| Err(NetCdfError::Refused { reason }))
    }

    fn wrong(&self, data_nbytes: usize) -> Option<String> {
        let Self { shape, number, cache, .. } = self;
        if self.names().1.is_empty() {
            return Some("it has no name".to_string());
        }
        if shape.contains(&0) {
            return Some(format!("its shape {shape:?} has no elements"));
        }
        let nbytes = shape.iter().try_fold(number.size() as u64, |n, len| n.checked_mul(*len));
        if nbytes != Some(data_nbytes as u64) {
            let size = number.size();
            return Some(format!(
                "the data are {data_nbytes} bytes, not {shape:?} elements of {size} bytes"
            ));
        }
        // A comparison that is false for NaN too.
        if let Some(ChunkCache { w0, .. }) = cache
            && !(0.0..=1.0).contains(w0)
        {
            return Some(format!("w0 of its chunk cache is {w0}, not from 0 to 1"));
        }
        self.wrong_chunk().or_else(|| self.wrong_filters()).or_else(|| self.wrong_format())
    }

    /// What a file of netCDF-3 cannot hold.
    fn wrong_format(&self) -> Option<String> {
        let lacks = |what: &str| Some(format!("files of netCDF-3 have no {what}"));
        if !self.format.is_netcdf3() {
            return None;
        }
        if !self.names().0.is_empty() {
            return lacks("groups");
        }
        if self.chunk.is_some() || self.cache.is_some() {
            return lacks("chunks");
        }
        if !self.format.has(self.number) {
            return Some("netCDF-3 has no numbers of this type before CDF-5".to_string());
        }
        None
    }

    fn wrong_chunk(&self) -> Option<String> {
        let Self { shape, chunk, .. } = self;
        let Some(chunk) = chunk else {
            let first = self.filters.first()?;
            return Some(format!("{first} needs chunks, and it is to be contiguous"));
        };
        if shape.is_empty() {
            return Some("a scalar has no chunks".to_string());
        }
        let fits = |(chunk, len): (&u64, &u64)| (1..=*len).contains(chunk);
        if chunk.len() != shape.len() || !chunk.iter().zip(shape).all(fits) {
            return Some(format!("chunks of {chunk:?} do not fit its shape {shape:?}"));
        }
        None
    }

    fn wrong_filters(&self) -> Option<String> {
        let filters = &self.filters;
        for (place, filter) in filters.iter().enumerate() {
            if filters[..place].iter().any(|before| before.id == filter.id) {
                return Some(format!("netCDF-C applies {filter} once"));
            }
            if let Some(usage) = self.wrong_options(filter) {
                return Some(format!("{filter} has options {:?}: {usage}", filter.cd_values));
            }
        }
        let has = |id| filters.iter().any(|filter| filter.id == id);
        if has(DEFLATE) && has(SZIP) {
            return Some("netCDF-C applies deflate or szip, not both".to_string());
        }
        // These count a chunk's elements, and leave out or mix up the four bytes that
        // fletcher32 adds: such a chunk cannot be read.
        let counts = |filter: &&Filter| [SZIP, SCALEOFFSET].contains(&filter.id);
        if let Some(filter) = filters.iter().find(counts)
            && has(FLETCHER32)
        {
            return Some(format!(
                "netCDF-C puts fletcher32 first, after which {filter} stores what cannot be read"
            ));
        }
        // As `NC4_hdf5_addfilter` inserts them, whatever the order of the calls.
        let mut made: Vec<&Filter> = filters.iter().collect();
        made.sort_by_key(|filter| match filter.id {
            FLETCHER32 => 0,
            SHUFFLE => 1,
            _ => 2,
        });
        if !made.iter().copied().eq(filters) {
            return Some(format!(
                "netCDF-C puts fletcher32 first and shuffle next, so that {} would become {}",
                joined(filters),
                joined(made)
            ));
        }
        None
    }

    /// How the options of one of netCDF-C's own filters should be, where they are not so.
    fn wrong_options(&self, filter: &Filter) -> Option<&'static str> {
        match (filter.id, filter.cd_values.as_slice()) {
            (DEFLATE, [0..=9]) => None,
            (DEFLATE, _) => Some("it takes a level from 0 to 9"),
            (SZIP, [4 | 32, pixels @ 2..=32]) if pixels % 2 == 0 => {
                let chunk = self.chunk.iter().flatten();
                let elements = chunk.fold(1, |n: u64, len| n.saturating_mul(*len));
                (elements < u64::from(*pixels)).then_some("a chunk has fewer elements")
            }
            (SZIP, _) => Some("it takes 4 (ec) or 32 (nn), and an even number from 2 to 32"),
            _ => None,
        }
    }
}

/// Filters as users write them, without options.
pub(crate) fn joined<'a>(filters: impl IntoIterator<Item = &'a Filter>) -> String {
    filters.into_iter().map(Filter::to_string).collect::<Vec<_>>().join("+")
}
