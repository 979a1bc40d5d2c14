//! Which datasets hold the elements of a virtual one, by the bytes of their files?
//!
//! Sources are looked for where libhdf5 looks for them.  What libhdf5 would refuse, or answer in its
//! own way, is left to it, with a reason.  The library for Python asks libhdf5 instead
//! (`routing/elsewhere.py`), for any file that h5py has open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chunkwise_engine::platform::{FileKey, Identity, is_locked, open_without_waiting};
use chunkwise_engine::{AnyDataset, MappedSource, VirtualDataset};
use chunkwise_format::{
    Datatype, Kind, Layout, Object, Selection, Slab, Target, Value, VirtualMapping,
};
use chunkwise_select::{Dims, Hyperslab, Mapping};

use crate::metadata::Metadata;
use crate::types::type_of;

/// Of more sources, libhdf5 opens those alone that a read needs.
const MOST_SOURCES: usize = 1 << 10;
/// Mappings of irregular selections may become as many.
const MOST_MAPPINGS: usize = 1 << 16;
/// Virtual datasets whose sources are virtual, and soft links that lead to soft links.
const DEEPEST: usize = 16;
/// Of a source with more chunks, those are looked up that are read.
const MOST_LISTED: u64 = 1 << 12;

/// A virtual dataset, and what it depends on.
pub struct Mapped {
    /// Of the engine.
    pub source: AnyDataset,
    /// The files that hold its elements.
    pub files: Vec<FileKey>,
    /// What else has to stay as it is.
    pub absent: Absent,
}

/// Where files or datasets were missing, for which libhdf5 looks again at each read.
#[derive(Default)]
pub struct Absent {
    places: Vec<(PathBuf, Found)>,
    /// The working directory, where that matters.
    folder: Option<PathBuf>,
}

/// Length and time of a file; None where there is none.
type Found = Option<(u64, Option<SystemTime>)>;

impl Absent {
    /// Whether nothing has come since.
    pub fn is_absent(&self) -> bool {
        self.places.iter().all(|(path, found)| look(path) == *found)
            && self.folder.as_deref().is_none_or(|then| working_folder().as_deref() == Some(then))
    }
}

fn look(path: &Path) -> Found {
    path.metadata().ok().map(|found| (found.len(), found.modified().ok()))
}

fn working_folder() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

impl Metadata {
    /// The virtual dataset at an address, of this `shape` now, in the file that was opened as `own`;
    /// names with a number go on until `gap` of them are missing.  libhdf5 does not open a file that
    /// another process has locked.
    ///
    /// # Errors
    /// Why libhdf5 has to read it.
    pub fn mapped(
        &self,
        address: u64,
        own: &Path,
        shape: &[u64],
        gap: u64,
    ) -> Result<Mapped, String> {
        let (files, absent) = <(Vec<FileKey>, Absent)>::default();
        let mut finder = SourceFinder { gap, files, absent, sources: 0 };
        let source = finder.dataset(self, address, own, Dims::from_slice(shape), 0)?;
        let SourceFinder { files, absent, .. } = finder;
        Ok(Mapped { source, files, absent })
    }
}

/// What is found for a dataset, and all to which it leads.
struct SourceFinder {
    gap: u64,
    files: Vec<FileKey>,
    absent: Absent,
    sources: usize,
}

/// A virtual dataset whose sources are looked for.
struct VirtualPlace<'m> {
    metadata: &'m Metadata,
    own: &'m Path,
    shape: Dims,
    kind: String,
    depth: usize,
    known: HashMap<(String, String), Option<AnyDataset>>,
    /// The file that was opened last.
    last: Option<(PathBuf, Metadata)>,
    found: Vec<MappedSource>,
}

impl SourceFinder {
    fn dataset(
        &mut self,
        metadata: &Metadata,
        address: u64,
        own: &Path,
        shape: Dims,
        depth: usize,
    ) -> Result<AnyDataset, String> {
        if depth > DEEPEST {
            return Err("too many virtual datasets lead to each other".into());
        }
        let object = metadata.object(address).map_err(in_words)?;
        let datatype = object.datatype().map_err(in_words)?.ok_or("it has no type")?;
        let kind = number_of(&datatype)?;
        let element_size = datatype.nbytes as usize;
        let stated = object.fill_value().map_err(in_words)?.ok_or("it states no fill value")?;
        let fill = match stated.value {
            Value::Undefined => None,
            Value::Given(bytes) => Some(bytes),
            Value::Default => Some(vec![0; element_size]),
        };
        let mappings = object.virtual_mappings().map_err(in_words)?;
        let (known, last, found) = Default::default();
        let mut place = VirtualPlace { metadata, own, shape, kind, depth, known, last, found };
        for mapping in &mappings {
            self.mapping(&mut place, mapping)?;
        }
        VirtualDataset::new(place.shape, element_size, fill, place.found)
            .map_err(in_words)?
            .map(AnyDataset::Virtual)
            .ok_or_else(|| "its mappings overlap".into())
    }

    /// Find what one mapping holds now.
    fn mapping(
        &mut self,
        place: &mut VirtualPlace<'_>,
        mapping: &VirtualMapping,
    ) -> Result<(), String> {
        let (here, there) = (Chosen::of(&mapping.shown)?, Chosen::of(&mapping.source)?);
        let (file, name) = (text(&mapping.file)?, text(&mapping.dataset)?);
        let Some(axis) = here.endless else {
            if there.endless.is_some() {
                return Err("one of its mappings has no end".into());
            }
            if matches!(here.selection, Selection::None) {
                return Ok(());
            }
            let Some(source) = self.source(place, &named(&file, None)?, &named(&name, None)?)?
            else {
                return Ok(());
            };
            let parts = (here.slabs(&place.shape)?, there.slabs(source.shape())?);
            return place.add(&source, parts, &name);
        };
        if place.depth > 0 {
            // libhdf5 reads it in the shape that was written down, not in that of its sources.
            return Err("one of its mappings has no end, and it is a source itself".into());
        }
        let whole = place.shape.get(axis).copied().ok_or(ODD)?;
        if let Some(other) = there.endless {
            let Some(source) = self.source(place, &named(&file, None)?, &named(&name, None)?)?
            else {
                return Ok(());
            };
            let of_source = source.shape().get(other).copied().ok_or(ODD)?;
            let length = there.elements_before(other, of_source)?;
            if length == 0 {
                return Ok(());
            }
            let shown = here.first(axis, length, &place.shape);
            let shown = shown.map_err(|_| "one of its sources has grown")?;
            let parts = (shown, there.first(other, length, source.shape())?);
            return place.add(&source, parts, &name);
        }
        let (start, stride, block) = here.endless_run(axis, "one of its mappings has no end")?;
        let count = whole.saturating_sub(start).div_ceil(stride);
        let mut found = 0;
        for number in 0..count {
            if number > u64::saturating_add(found, self.gap) {
                break;
            }
            let names = (named(&file, Some(number))?, named(&name, Some(number))?);
            let Some(source) = self.source(place, &names.0, &names.1)? else { continue };
            found = number + 1;
            let begin = start + number * stride;
            if begin.saturating_add(block) > whole {
                return Err("one of its sources reaches beyond it".into());
            }
            let shown = here.within(Some((axis, (begin, 1, 1, block))), &place.shape)?;
            place.add(&source, (vec![shown], there.slabs(source.shape())?), &names.1)?;
        }
        Ok(())
    }

    /// A source; None if its file or the dataset is missing.
    fn source(
        &mut self,
        place: &mut VirtualPlace<'_>,
        file: &str,
        name: &str,
    ) -> Result<Option<AnyDataset>, String> {
        let key = (file.to_string(), name.to_string());
        if let Some(known) = place.known.get(&key) {
            return Ok(known.clone());
        }
        self.sources += 1;
        if self.sources > MOST_SOURCES {
            return Err(format!("it has more than {MOST_SOURCES} sources"));
        }
        let source = match file {
            "." => self.within(place.metadata, place.own, name, place, false),
            _ => match self.path_of(file, place.own)? {
                None => Ok(None),
                Some(path) => {
                    let opened = match place.last.take() {
                        Some((last, opened)) if last == path => opened,
                        _ => self.opened(&path)?,
                    };
                    let found = self.within(&opened, &path, name, place, true);
                    place.last = Some((path, opened));
                    found
                }
            },
        }?;
        place.known.insert(key, source.clone());
        Ok(source)
    }

    /// The dataset of a name in a file that is open.
    fn within(
        &mut self,
        metadata: &Metadata,
        path: &Path,
        name: &str,
        place: &VirtualPlace<'_>,
        is_other: bool,
    ) -> Result<Option<AnyDataset>, String> {
        let shown = || format!("{}: dataset {name}", path.display());
        let Some(object) = found_at(metadata, name, 0)? else {
            if is_other {
                self.absent.places.push((path.to_path_buf(), look(path)));
            }
            return Ok(None);
        };
        if object.kind() != Kind::Dataset {
            return Err(format!("its source {} is no dataset", shown()));
        }
        let datatype = object.datatype().map_err(in_words)?.ok_or("a source has no type")?;
        if number_of(&datatype)? != place.kind {
            return Err(format!("its source {} has another type", shown()));
        }
        if let Some(Layout::Virtual { .. }) = object.layout().map_err(in_words)? {
            let shape = object.dataspace().map_err(in_words)?.ok_or("a source has no shape")?;
            let shape = Dims::from_slice(shape.shape());
            return self
                .dataset(metadata, object.address(), path, shape, place.depth + 1)
                .map(Some);
        }
        let (dataset, _) = metadata
            .dataset(object.address(), MOST_LISTED)
            .ok_or_else(|| format!("its source {} has to be read by libhdf5", shown()))?;
        Ok(Some(AnyDataset::Stored(dataset)))
    }

    /// Open the file of a source.
    fn opened(&mut self, path: &Path) -> Result<Metadata, String> {
        let failed = |why: &dyn std::fmt::Display| {
            format!("the file {} of one of its sources {why}", path.display())
        };
        let file = open_without_waiting(path);
        let file = file.map_err(|error| failed(&format!("cannot be opened: {error}")))?;
        if is_locked(&file) {
            return Err(failed(&"is locked by a writer"));
        }
        let key = Identity::of(&file).map_err(|error| failed(&error))?.key;
        let opened = Metadata::of_file(&file);
        let opened = opened.ok_or_else(|| failed(&"is unusual, or open for writing"))?;
        if !self.files.contains(&key) {
            self.files.push(key);
        }
        Ok(opened)
    }

    /// Where a source's file is; None if there is none.
    fn path_of(&mut self, file: &str, own: &Path) -> Result<Option<PathBuf>, String> {
        let folder = working_folder().ok_or("the working directory was removed")?;
        let name = Path::new(file);
        let mut tried = Vec::new();
        let mut rest = name;
        if name.is_absolute() {
            tried.push(name.to_path_buf());
            rest = name.file_name().map(Path::new).ok_or("the name of a source is none")?;
        }
        let actual = own.canonicalize().ok();
        let folders = [own.parent(), Some(&*folder), actual.as_deref().and_then(Path::parent)];
        for folder in folders.into_iter().flatten() {
            let path = folder.join(rest);
            if !tried.contains(&path) {
                tried.push(path);
            }
        }
        if let Some(found) = tried.iter().position(|path| look(path).is_some()) {
            return Ok(Some(tried.swap_remove(found)));
        }
        self.absent.places.extend(tried.into_iter().map(|path| (path, None)));
        self.absent.folder = Some(folder);
        Ok(None)
    }
}

impl VirtualPlace<'_> {
    fn add(
        &mut self,
        source: &AnyDataset,
        (here, there): (Vec<Hyperslab>, Vec<Hyperslab>),
        name: &str,
    ) -> Result<(), String> {
        let made = Mapping::of_any(&here, &there, source.shape(), MOST_MAPPINGS);
        let made = made.filter(|made| self.found.len() + made.len() <= MOST_MAPPINGS);
        let made = made.ok_or_else(|| format!("it maps {name} in too many pieces"))?;
        self.found.extend(made.into_iter().map(|mapping| MappedSource {
            mapping,
            source: source.clone(),
            fields: None,
            name: name.to_string(),
        }));
        Ok(())
    }
}

const ODD: &str = "one of its mappings is of no hyperslab";

/// A selection of a mapping, and its dimension without end.
struct Chosen<'m> {
    selection: &'m Selection,
    endless: Option<usize>,
}

/// Start, stride, count and block in one dimension.
type Run = (u64, u64, u64, u64);

impl<'m> Chosen<'m> {
    fn of(selection: &'m Selection) -> Result<Self, String> {
        let endless = match selection {
            Selection::Points(_) => return Err(ODD.into()),
            Selection::Regular(slabs) => {
                slabs.iter().position(|slab| slab.count.is_none() || slab.block.is_none())
            }
            _ => None,
        };
        Ok(Self { selection, endless })
    }

    /// The hyperslabs that have an end, in an array of this shape.
    fn slabs(&self, shape: &[u64]) -> Result<Vec<Hyperslab>, String> {
        match self.selection {
            Selection::None | Selection::Points(_) => Err(ODD.into()),
            Selection::All => Ok(vec![Hyperslab::all(shape)]),
            Selection::Regular(_) => Ok(vec![self.within(None, shape)?]),
            Selection::Boxes(boxes) => {
                let slab = |first: &[u64], last: &[u64]| {
                    let len =
                        |(last, first): (&u64, &u64)| last.checked_sub(*first)?.checked_add(1);
                    let lens = last.iter().zip(first).map(len).collect::<Option<Dims>>()?;
                    let ones: Dims = first.iter().map(|_| 1).collect();
                    Hyperslab::new(shape, first, &ones, &ones, &lens).ok()
                };
                let slabs = boxes.iter().map(|(first, last)| slab(first, last));
                slabs.collect::<Option<_>>().ok_or_else(|| ODD.into())
            }
        }
    }

    /// The hyperslab, with another run in one dimension.
    fn within(&self, run: Option<(usize, Run)>, shape: &[u64]) -> Result<Hyperslab, String> {
        let Selection::Regular(slabs) = self.selection else { return Err(ODD.into()) };
        let runs = slabs.iter().enumerate().map(|(d, slab)| match run {
            Some((axis, run)) if axis == d => Ok(run),
            _ => {
                let ends = slab.count.zip(slab.block).ok_or(ODD)?;
                Ok((slab.start, slab.stride, ends.0, ends.1))
            }
        });
        let runs: Vec<Run> = runs.collect::<Result<_, String>>()?;
        let of = |part: fn(&Run) -> u64| runs.iter().map(part).collect::<Dims>();
        let (start, stride) = (of(|run| run.0), of(|run| run.1));
        let (count, block) = (of(|run| run.2), of(|run| run.3));
        Hyperslab::new(shape, &start, &stride, &count, &block).map_err(in_words)
    }

    /// Start, stride and block of the dimension without end; an error where a block has none.
    fn endless_run(&self, axis: usize, no_end: &str) -> Result<(u64, u64, u64), String> {
        let Selection::Regular(slabs) = self.selection else { return Err(ODD.into()) };
        let Slab { start, stride, block, .. } = *slabs.get(axis).ok_or(ODD)?;
        Ok((start, stride.max(1), block.filter(|&block| block > 0).ok_or(no_end)?))
    }

    /// As [`Self::endless_run`]: a block without end is elements one by one without end.
    fn run(&self, axis: usize) -> Result<(u64, u64, u64), String> {
        match self.selection {
            Selection::Regular(slabs) if slabs.get(axis).is_some_and(|s| s.block.is_none()) => {
                Ok((slabs[axis].start, 1, 1))
            }
            _ => self.endless_run(axis, ODD),
        }
    }

    /// How many elements are selected in the dimension without end, if it has this size.
    fn elements_before(&self, axis: usize, size: u64) -> Result<u64, String> {
        let (start, stride, block) = self.run(axis)?;
        let past = size.saturating_sub(start);
        Ok((past / stride).saturating_mul(block).saturating_add(block.min(past % stride)))
    }

    /// The first `length` elements along the unlimited dimension, and all along the others.
    fn first(&self, axis: usize, length: u64, shape: &[u64]) -> Result<Vec<Hyperslab>, String> {
        let (start, stride, block) = self.run(axis)?;
        let (full, rest) = (length / block, length % block);
        let begin = full.checked_mul(stride).and_then(|at| at.checked_add(start)).ok_or(ODD)?;
        let runs = [(start, stride, full, block), (begin, 1, 1, rest)];
        let some = runs.into_iter().filter(|run| run.2 > 0 && run.3 > 0);
        some.map(|run| self.within(Some((axis, run)), shape)).collect()
    }
}

/// The type of a dataset whose elements may be read as they are stored.
fn number_of(datatype: &Datatype) -> Result<String, String> {
    let kind = type_of(datatype).filter(|kind| !kind.contains(['S', 'U', 'O']));
    kind.ok_or_else(|| "it is virtual, and its elements are not plain numbers".into())
}

/// The object with a path in a file; None where there is none.
fn found_at<'m>(
    metadata: &'m Metadata,
    path: &str,
    depth: usize,
) -> Result<Option<Object<'m>>, String> {
    let mut object = metadata.object(metadata.root()).map_err(in_words)?;
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let link = object.link(part.as_bytes()).map_err(in_words)?;
        object = match link.map(|link| link.target) {
            None => return Ok(None),
            Some(Target::Hard(address)) => metadata.object(address).map_err(in_words)?,
            Some(Target::Soft(path)) if depth < DEEPEST && path.starts_with(b"/") => {
                found_at(metadata, &text(&path)?, depth + 1)?
                    .ok_or("a soft link to a source leads nowhere")?
            }
            Some(_) => return Err("a source is behind a link that only libhdf5 follows".into()),
        };
    }
    Ok(Some(object))
}

/// Put the number of a block into the name of a source.
fn named(name: &str, number: Option<u64>) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('%') {
        made.push_str(before);
        match (behind.chars().next(), number) {
            (Some('b'), Some(number)) => made.push_str(&number.to_string()),
            (Some('%'), _) => made.push('%'),
            _ => return Err(format!("the name {name} of a source is none")),
        }
        rest = &behind[1..];
    }
    Ok(made + rest)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "the name of a source is no text".into())
}

#[allow(clippy::needless_pass_by_value)] // For `map_err`.
fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
