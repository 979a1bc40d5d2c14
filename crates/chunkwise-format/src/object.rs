//! What is an object, and what does its header say of it?

use crate::attribute::Attribute;
use crate::attributes;
use crate::btree2::BTree2;
use crate::bytes::Bytes;
use crate::checksum::checksum;
use crate::context::Context;
use crate::dataspace::{Dataspace, Dims};
use crate::datatype::Datatype;
use crate::error::{FormatError, Lost, Problem, Structure};
use crate::external::{self, ExternalFile};
use crate::fields::{Place, Widths, until_zero};
use crate::fill_value::FillValue;
use crate::filters::{self, Filter};
use crate::header::{Header, kind};
use crate::heap_fractal::FractalHeap;
use crate::index::{ChunkRecord, ChunkTable};
use crate::layout::{self, Layout};
use crate::link::Link;
use crate::links;
use crate::shared;
use crate::source::{Part, Source};
use crate::times;
use crate::virtual_mapping::{self, VirtualMapping};

/// Errors of one object's parts that are kept.
const MOST_ERRORS: usize = 100;

/// An object of a file.
pub struct Object<'f> {
    context: Context<'f>,
    header: Header<'f>,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It holds links.
    Group,
    /// It holds values.
    Dataset,
    /// A committed datatype.
    Datatype,
    /// Nothing that is known.
    Unknown,
}

impl Kind {
    /// What the header at an address is of, in bytes whose superblock may be lost: its numbers are
    /// taken for those of 8 bytes.  None where there is no sound header.
    pub fn at(bytes: &dyn Bytes, base: u64, address: u64) -> Option<Self> {
        let source = Source::new(bytes, base, Widths { offset: 8, length: 8 });
        Header::read(&source, address).ok().map(|header| Self::of(&header))
    }

    fn of(header: &Header<'_>) -> Self {
        let has = |kind| header.first(kind).is_some();
        if has(kind::SYMBOL_TABLE) || has(kind::LINK_INFO) {
            Self::Group
        } else if has(kind::DATATYPE) && has(kind::DATASPACE) {
            Self::Dataset
        } else if has(kind::DATATYPE) {
            Self::Datatype
        } else {
            Self::Unknown
        }
    }
}

impl<'f> Object<'f> {
    pub(crate) fn read(context: Context<'f>, address: u64) -> Result<Self, FormatError> {
        let header = Header::read(&context.source(), address)?;
        Ok(Self { context, header })
    }

    /// What was found, or an error that names this object.
    fn named<T>(&self, found: Result<T, FormatError>) -> Result<T, FormatError> {
        found.map_err(|error| error.of(self.header.address))
    }

    /// Where its header is.
    pub fn address(&self) -> u64 {
        self.header.address
    }

    /// The version of its header: 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.header.version
    }

    /// The kinds of its header's messages, in their order.
    pub fn messages(&self) -> impl Iterator<Item = u16> {
        self.header.messages.iter().map(|message| message.kind)
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        Kind::of(&self.header)
    }

    /// How many hard links lead to it.
    ///
    /// # Errors
    /// The message that says so is damaged.
    pub fn reference_count(&self) -> Result<u32, FormatError> {
        if let Some(count) = self.header.reference_count {
            return Ok(count);
        }
        let Some(message) = self.header.first(kind::REFERENCE_COUNT) else { return Ok(1) };
        let mut fields = message.part.fields();
        self.named(fields.version(0).and_then(|()| fields.u32()))
    }

    /// When it was last changed, in seconds since 1970; None where the file does not say.
    ///
    /// # Errors
    /// The message that says so is damaged.
    pub fn modification_time(&self) -> Result<Option<i64>, FormatError> {
        self.named(times::modified(&self.header))
    }

    /// When it was last read, written, changed and made, in seconds since 1970.
    pub fn times(&self) -> Option<[u32; 4]> {
        self.header.times
    }

    /// Its comment.
    pub fn comment(&self) -> Option<&[u8]> {
        self.header.first(kind::COMMENT).map(|message| until_zero(message.part.bytes()))
    }

    /// All links of a group, in the order of their names; none of other objects.
    ///
    /// # Errors
    /// What holds them is damaged.
    pub fn links(&self) -> Result<Vec<Link>, FormatError> {
        self.named(links::all(self.context, &self.header, &mut Err))
    }

    /// The links that can be read, in the order of their names, and what is wrong with others:
    /// each structure once.
    pub fn readable_links(&self) -> (Vec<Link>, Vec<FormatError>) {
        self.readable(|lost| links::all(self.context, &self.header, lost))
    }

    /// What can be read, and the errors of the rest.
    fn readable<T>(
        &self,
        read: impl FnOnce(&mut Lost<'_>) -> Result<Vec<T>, FormatError>,
    ) -> (Vec<T>, Vec<FormatError>) {
        let mut errors: Vec<FormatError> = Vec::new();
        let found = read(&mut |error| {
            // One block may hold many of them.  Once too much was read, nothing can be.
            let is_known = |known: &FormatError| {
                known.problem == Problem::Overlaps
                    || (known.structure, known.address) == (error.structure, error.address)
            };
            if errors.len() < MOST_ERRORS && !errors.iter().any(is_known) {
                errors.push(error);
            }
            Ok(())
        });
        (found.unwrap_or_default(), errors)
    }

    /// The link with a name.
    ///
    /// # Errors
    /// What leads to it is damaged.
    pub fn link(&self, name: &[u8]) -> Result<Option<Link>, FormatError> {
        self.named(links::one(self.context, &self.header, name))
    }

    /// Bytes of names that `link` reads.
    ///
    /// # Errors
    /// What holds them is damaged.
    pub fn names_nbytes(&self) -> Result<u64, FormatError> {
        self.named(links::names_nbytes(self.context, &self.header))
    }

    /// Whether the order is known in which links were made.
    ///
    /// # Errors
    /// The message that says so is damaged.
    pub fn tracks_links(&self) -> Result<bool, FormatError> {
        self.named(links::tracked(&self.header))
    }

    /// All attributes, in the order of their names.
    ///
    /// # Errors
    /// One of them is damaged, or what holds them.
    pub fn attributes(&self) -> Result<Vec<Attribute>, FormatError> {
        self.named(attributes::all(self.context, &self.header, &mut Err))
    }

    /// The attributes that can be read, in the order of their names, and what is wrong with others.
    pub fn readable_attributes(&self) -> (Vec<Attribute>, Vec<FormatError>) {
        self.readable(|lost| attributes::all(self.context, &self.header, lost))
    }

    /// The attribute with a name.
    ///
    /// # Errors
    /// It is damaged, or what leads to it.
    pub fn attribute(&self, name: &[u8]) -> Result<Option<Attribute>, FormatError> {
        self.named(attributes::one(self.context, &self.header, name))
    }

    /// Whether the order is known in which attributes were made.
    pub fn tracks_attributes(&self) -> bool {
        self.header.tracks_attributes
    }

    /// Read what is needed for nothing else: B-trees by creation order, and what keeps track of
    /// the free space of heaps.
    ///
    /// # Errors
    /// Something of it is damaged.
    pub fn check_rest(&self) -> Result<(), FormatError> {
        let check = |kind, count_len| {
            let Some(message) = self.header.first(kind) else { return Ok(()) };
            let mut fields = message.part.fields();
            fields.version(0)?;
            let flags = fields.u8()?;
            fields.skip(if flags & 1 != 0 { count_len } else { 0 })?;
            let source = self.context.source();
            if let Some(heap) = fields.address()? {
                FractalHeap::open(&source, heap)?.check_space()?;
            }
            // The B-tree by name.
            fields.address()?;
            let tree = if flags & 2 != 0 { fields.address()? } else { None };
            tree.map_or(Ok(()), |tree| BTree2::open(&source, tree)?.each(&mut |_| Ok(())))
        };
        self.named(check(kind::LINK_INFO, 8).and_then(|()| check(kind::ATTRIBUTE_INFO, 2)))
    }

    /// What a message of a kind is, wherever its content is.
    fn message<T>(
        &self,
        kind: u16,
        read: impl FnOnce(&Source<'f>, Part<'f>) -> Result<T, FormatError>,
    ) -> Result<Option<(T, Option<u64>)>, FormatError> {
        let Some(message) = self.header.first(kind) else { return Ok(None) };
        let source = self.context.source();
        let found = shared::content(self.context, &source, message);
        let read = found.and_then(|found| Ok((read(&source, found.part)?, found.committed)));
        self.named(read).map(Some)
    }

    /// The type of a dataset's elements, or a committed type.
    ///
    /// # Errors
    /// It is damaged.
    pub fn datatype(&self) -> Result<Option<Datatype>, FormatError> {
        let found = self.message(kind::DATATYPE, |_, part| Datatype::read(&mut part.fields()))?;
        Ok(found.map(|(datatype, committed)| Datatype { committed, ..datatype }))
    }

    /// The bytes that state the type of a dataset's elements, or a committed type; other bytes may
    /// follow them.
    ///
    /// # Errors
    /// The message is elsewhere, and that place is damaged.
    pub fn datatype_message(&self) -> Result<Option<Vec<u8>>, FormatError> {
        let found = self.message(kind::DATATYPE, |_, part| Ok(part.bytes().to_vec()))?;
        Ok(found.map(|(bytes, _)| bytes))
    }

    /// The shape of a dataset.
    ///
    /// # Errors
    /// It is damaged.
    pub fn dataspace(&self) -> Result<Option<Dataspace>, FormatError> {
        let found = self.message(kind::DATASPACE, |_, part| Dataspace::read(&mut part.fields()))?;
        Ok(found.map(|(dataspace, _)| dataspace))
    }

    /// The fill value of a dataset; None where the file says nothing: libhdf5 then takes it as
    /// undefined.
    ///
    /// # Errors
    /// It is damaged.
    pub fn fill_value(&self) -> Result<Option<FillValue>, FormatError> {
        let new = self.message(kind::FILL_VALUE, |_, part| FillValue::read(&mut part.fields()))?;
        if let Some((found, _)) = new {
            return Ok(Some(found));
        }
        let old =
            self.message(kind::OLD_FILL_VALUE, |_, part| FillValue::read_old(&mut part.fields()))?;
        Ok(old.map(|(found, _)| found))
    }

    /// How a dataset is stored.
    ///
    /// # Errors
    /// The message that says so is damaged.
    pub fn layout(&self) -> Result<Option<Layout>, FormatError> {
        let found = self.message(kind::LAYOUT, |_, part| Layout::read(&mut part.fields()))?;
        Ok(found.map(|(layout, _)| layout))
    }

    /// The version of the message that says how a dataset is stored; None of what has none.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn layout_version(&self) -> Result<Option<u8>, FormatError> {
        let found = self.message(kind::LAYOUT, |_, part| part.fields().u8())?;
        Ok(found.map(|(version, _)| version))
    }

    /// Where bytes of the file may be others, and these: then the lengths of chunks take no more
    /// bytes than they need, and nothing else has changed.  None where they take no more.
    ///
    /// HDF5 2.0 refuses datasets of which they do.
    ///
    /// # Errors
    /// The file cannot be read, or the message is damaged.
    pub fn narrowed(&self) -> Result<Option<(u64, Vec<u8>)>, FormatError> {
        let message = self.header.first(kind::LAYOUT);
        let Some((message, made)) =
            message.and_then(|message| Some((message, layout::narrowed(message.part.bytes())?)))
        else {
            return Ok(None);
        };
        // What is damaged must not become sound by it.
        self.layout()?;
        let at = message.part.place().address;
        let seal = if self.header.version == 1 { 0 } else { 4 };
        let blocks = self.header.blocks.iter().map(|&(at, len)| (at, len.saturating_add(seal)));
        let overlap = |a: (u64, u64), b: (u64, u64)| {
            a.0 < b.0.saturating_add(b.1) && b.0 < a.0.saturating_add(a.1)
        };
        let Some(holding) = blocks.clone().find(|&block| overlap(block, (at, 1))) else {
            return Ok(None);
        };
        // Blocks that overlap would change each other.
        if blocks.filter(|&block| overlap(block, holding)).count() > 1 {
            return Ok(None);
        }
        if self.header.version == 1 {
            return Ok(Some((at, made)));
        }
        let (begin, len) = holding;
        let place = Place::new(Structure::ObjectHeader, begin);
        let block = self.named(self.context.source().read(place, len))?.unsealed();
        let mut block = self.named(block)?.bytes().to_vec();
        let from = at.saturating_sub(begin) as usize;
        let Some(old) = block.get_mut(from..from.saturating_add(made.len())) else {
            return Ok(None);
        };
        old.copy_from_slice(&made);
        block.extend(checksum(&block).to_le_bytes());
        Ok(Some((begin, block)))
    }

    /// The filters of a dataset's chunks, in the order in which they are encoded.
    ///
    /// # Errors
    /// The message that lists them is damaged.
    pub fn filters(&self) -> Result<Vec<Filter>, FormatError> {
        let found = self.message(kind::FILTERS, |_, part| filters::read(&mut part.fields()))?;
        Ok(found.map(|(filters, _)| filters).unwrap_or_default())
    }

    /// The other files that hold a dataset's data, in their order.
    ///
    /// # Errors
    /// The list is damaged.
    pub fn external_files(&self) -> Result<Vec<ExternalFile>, FormatError> {
        let found = self.message(kind::EXTERNAL_FILES, |source, part| {
            external::read(source, &mut part.fields())
        })?;
        Ok(found.map(|(files, _)| files).unwrap_or_default())
    }

    /// The mappings of a virtual dataset; none of others.
    ///
    /// # Errors
    /// The list is damaged.
    pub fn virtual_mappings(&self) -> Result<Vec<VirtualMapping>, FormatError> {
        match self.layout()? {
            Some(Layout::Virtual { collection: Some(collection), number }) => {
                self.named(virtual_mapping::read(&self.context.source(), collection, number))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// All chunks that were written, in the order of their index.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn chunks(&self) -> Result<Vec<ChunkRecord>, FormatError> {
        let mut found = Vec::new();
        self.each_chunk(None, &mut |chunk| found.push(chunk))?;
        Ok(found)
    }

    /// Those of the chunks at these places in the grid, in ascending order, that were written.  Of
    /// the index, only what leads to them is read.
    ///
    /// # Errors
    /// What leads to them is damaged.
    pub fn chunks_at(&self, places: &[Dims]) -> Result<Vec<ChunkRecord>, FormatError> {
        let mut found = Vec::new();
        self.each_chunk(Some(places), &mut |chunk| found.push(chunk))?;
        Ok(found)
    }

    /// Give each chunk that was written, or those of `places`, as the other functions return them.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn each_chunk(
        &self,
        places: Option<&[Dims]>,
        each: &mut dyn FnMut(ChunkRecord),
    ) -> Result<(), FormatError> {
        match self.chunk_table()? {
            Some(table) => table.each(self.context, places, each),
            None => Ok(()),
        }
    }

    /// What leads to the chunks; None of a dataset that has none.
    ///
    /// # Errors
    /// A message that is needed for it is damaged.
    pub fn chunk_table(&self) -> Result<Option<ChunkTable>, FormatError> {
        let Some(Layout::Chunked(layout)) = self.layout()? else { return Ok(None) };
        let Some(dataspace) = self.dataspace()? else { return Ok(None) };
        let place = Place::new(Structure::Message(kind::LAYOUT), self.header.address);
        if dataspace.shape().len() != layout.chunk.len() {
            let what = "its chunks have not as many dimensions as the dataset";
            return self.named(Err(place.wrong(what)));
        }
        Ok(Some(ChunkTable { layout, dataspace, filtered: !self.filters()?.is_empty(), place }))
    }
}
