//! Prints what files hold, one object a line as JSON, for comparing it with what others read.
//!
//!     cargo run -p chunkwise-format --example dump -- FILE...
//!
//! Names are text; bytes that are no UTF-8 become lone surrogates, as Python reads them.

#![allow(clippy::print_stdout)]

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;

use chunkwise_format::{
    Attribute, Bits, ByteOrder, Bytes, ChunkIndex, Class, Dataspace, Datatype, File, Filter,
    FormatError, Kind, Layout, Link, Object, Selection, Target, Text, Value,
};

/// A file's bytes, whose metadata may have checksums of Fletcher's.
struct Stored(Vec<u8>);

impl Bytes for Stored {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        self.0.read(position, nbytes)
    }

    fn nbytes(&self) -> u64 {
        self.0.nbytes()
    }

    fn unfilter(
        &self,
        filters: &[Filter],
        mask: u32,
        stored: &[u8],
        nbytes: usize,
    ) -> Option<Vec<u8>> {
        const FLETCHER32: u16 = 3;
        match filters {
            [filter] if filter.number == FLETCHER32 && mask == 0 => {
                stored.get(..nbytes).map(<[u8]>::to_vec)
            }
            _ => None,
        }
    }
}

/// JSON, as text.
struct Json(String);

impl Json {
    fn of(value: impl std::fmt::Display) -> Self {
        Self(value.to_string())
    }

    fn null() -> Self {
        Self("null".into())
    }

    fn text(bytes: &[u8]) -> Self {
        let mut out = String::from("\"");
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '"' | '\\' => out.extend(['\\', character]),
                    '\0'..='\x1f' => {
                        let _ = write!(out, "\\u{:04x}", character as u32);
                    }
                    character => out.push(character),
                }
            }
            for byte in chunk.invalid() {
                let _ = write!(out, "\\udc{byte:02x}");
            }
        }
        out.push('"');
        Self(out)
    }

    fn hex(bytes: &[u8]) -> Self {
        let mut out = String::from("\"");
        for byte in bytes {
            let _ = write!(out, "{byte:02x}");
        }
        out.push('"');
        Self(out)
    }

    fn list(items: impl IntoIterator<Item = Self>) -> Self {
        let items: Vec<String> = items.into_iter().map(|item| item.0).collect();
        Self(format!("[{}]", items.join(",")))
    }

    fn object<'k>(items: impl IntoIterator<Item = (&'k str, Self)>) -> Self {
        let items: Vec<String> =
            items.into_iter().map(|(key, item)| format!("\"{key}\":{}", item.0)).collect();
        Self(format!("{{{}}}", items.join(",")))
    }

    fn option<T>(value: Option<T>, json: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(Self::null, json)
    }
}

fn numbers<T: std::fmt::Display>(numbers: impl IntoIterator<Item = T>) -> Json {
    Json::list(numbers.into_iter().map(Json::of))
}

fn word(text: &str) -> Json {
    Json::text(text.as_bytes())
}

fn order(order: ByteOrder) -> Json {
    word(match order {
        ByteOrder::Little => "<",
        ByteOrder::Big => ">",
        ByteOrder::Vax => "vax",
    })
}

fn bits(bits: &Bits) -> [(&'static str, Json); 4] {
    [
        ("order", order(bits.order)),
        ("offset", Json::of(bits.offset)),
        ("precision", Json::of(bits.precision)),
        ("padding", numbers(bits.padding.map(u8::from))),
    ]
}

fn text(text: &Text) -> [(&'static str, Json); 2] {
    let charset = match text.charset {
        chunkwise_format::Charset::Ascii => 0,
        chunkwise_format::Charset::Utf8 => 1,
        chunkwise_format::Charset::Other(number) => number,
    };
    [("padding", Json::of(text.padding)), ("charset", Json::of(charset))]
}

fn datatype(of: &Datatype) -> Json {
    let (class, mut items): (&str, Vec<(&str, Json)>) = match &of.class {
        Class::Integer { bits: its_bits, signed } => {
            let mut items = Vec::from(bits(its_bits));
            items.push(("signed", Json::of(signed)));
            ("integer", items)
        }
        Class::Float { bits: its_bits, float } => {
            let mut items = Vec::from(bits(its_bits));
            let fields = [
                float.sign,
                float.exponent,
                float.exponent_bits,
                float.mantissa,
                float.mantissa_bits,
            ];
            items.push(("fields", numbers(fields)));
            items.push(("bias", Json::of(float.exponent_bias)));
            items.push(("normalization", Json::of(float.normalization)));
            ("float", items)
        }
        Class::Time { .. } => ("time", vec![]),
        Class::Text(its) => ("text", text(its).into()),
        Class::Bitfield(its_bits) => ("bitfield", bits(its_bits).into()),
        Class::Opaque { tag } => ("opaque", vec![("tag", Json::text(tag))]),
        Class::Compound(members) => {
            let members = members.iter().map(|member| {
                let (name, offset) = (Json::text(&member.name), Json::of(member.offset));
                Json::list([name, offset, datatype(&member.datatype)])
            });
            ("compound", vec![("members", Json::list(members))])
        }
        Class::Reference { kind } => ("reference", vec![("kind", Json::of(kind))]),
        Class::Enumeration { base, members } => {
            let members = members
                .iter()
                .map(|(name, value)| Json::list([Json::text(name), Json::hex(value)]));
            ("enum", vec![("base", datatype(base)), ("members", Json::list(members))])
        }
        Class::Sequence(base) => ("sequence", vec![("base", datatype(base))]),
        Class::LongText { text: its, .. } => ("long text", text(its).into()),
        Class::Array { shape, base } => {
            ("array", vec![("shape", numbers(shape)), ("base", datatype(base))])
        }
        Class::Complex { base, .. } => ("complex", vec![("base", datatype(base))]),
    };
    items.push(("class", word(class)));
    items.push(("size", Json::of(of.nbytes)));
    items.push(("version", Json::of(of.version)));
    items.push(("elsewhere", Json::of(of.leads_elsewhere())));
    if let Some(address) = of.committed {
        items.push(("committed", Json::of(address)));
    }
    Json::object(items)
}

fn dataspace(of: &Dataspace) -> [(&'static str, Json); 3] {
    let kind = match of {
        Dataspace::Null => "null",
        Dataspace::Scalar => "scalar",
        Dataspace::Simple { .. } => "simple",
    };
    [
        ("space", word(kind)),
        ("shape", numbers(of.shape())),
        ("maxshape", Json::list(of.max_shape().iter().map(|n| Json::option(*n, Json::of)))),
    ]
}

fn attribute(file: &File<Stored>, of: &Attribute) -> Json {
    let mut items = Vec::from(dataspace(&of.dataspace));
    items.push(("name", Json::text(&of.name)));
    items.push(("order", Json::option(of.creation_order, Json::of)));
    items.push(("datatype", datatype(&of.datatype)));
    items.push(("value", Json::hex(&of.value)));
    if let Class::Sequence(_) | Class::LongText { .. } = of.datatype.class {
        let values = of.value.chunks(of.datatype.nbytes.max(1) as usize);
        items.push(("variable", Json::list(values.map(|value| variable(file, value)))));
    }
    if let Class::Reference { kind } = of.datatype.class {
        let values = of.value.chunks(of.datatype.nbytes.max(1) as usize);
        let leads = values.map(|value| match file.reference(kind, value) {
            Ok(found) => Json::option(found, |found| {
                let region = Json::option(found.region.as_ref(), selection);
                Json::list([Json::of(found.object), region])
            }),
            Err(error) => word(&error.to_string()),
        });
        items.push(("references", Json::list(leads)));
    }
    Json::object(items)
}

/// A value of variable length: how many elements, and bytes.
fn variable(file: &File<Stored>, value: &[u8]) -> Json {
    let found = file.variable(value).and_then(|found| {
        let Some((count, collection, number)) = found else { return Ok(Json::null()) };
        let collection = file.collection(collection)?;
        let bytes = collection.get(number).unwrap_or_default();
        Ok(Json::list([Json::of(count), Json::hex(bytes)]))
    });
    found.unwrap_or_else(|error| word(&error.to_string()))
}

fn link(of: &Link) -> Json {
    let mut items =
        vec![("name", Json::text(&of.name)), ("order", Json::option(of.creation_order, Json::of))];
    let (kind, target) = match &of.target {
        Target::Hard(address) => ("hard", Json::of(address)),
        Target::Soft(path) => ("soft", Json::text(path)),
        Target::External { file, path } => {
            ("external", Json::list([Json::text(file), Json::text(path)]))
        }
        Target::Other { kind, .. } => ("other", Json::of(kind)),
    };
    items.push(("kind", word(kind)));
    items.push(("target", target));
    Json::object(items)
}

fn selection(of: &Selection) -> Json {
    match of {
        Selection::None => word("none"),
        Selection::All => word("all"),
        Selection::Points(points) => Json::list(points.iter().map(numbers)),
        Selection::Regular(slabs) => Json::list(slabs.iter().map(|slab| {
            let limit = |number: Option<u64>| Json::option(number, Json::of);
            let (start, stride) = (Json::of(slab.start), Json::of(slab.stride));
            Json::list([start, stride, limit(slab.count), limit(slab.block)])
        })),
        Selection::Boxes(boxes) => Json::list(
            boxes.iter().map(|(first, last)| Json::list([numbers(first), numbers(last)])),
        ),
    }
}

fn layout(of: &Layout) -> Json {
    match of {
        Layout::Compact(bytes) => {
            Json::object([("class", word("compact")), ("bytes", Json::hex(bytes))])
        }
        Layout::Contiguous { address, nbytes } => Json::object([
            ("class", word("contiguous")),
            ("address", Json::option(*address, Json::of)),
            ("nbytes", Json::option(*nbytes, Json::of)),
        ]),
        Layout::Chunked(chunked) => Json::object([
            ("class", word("chunked")),
            ("chunk", numbers(&chunked.chunk)),
            ("element", Json::of(chunked.element_nbytes)),
            ("version", Json::of(chunked.version)),
            ("edges_unfiltered", Json::of(chunked.edges_unfiltered)),
            (
                "index",
                word(match chunked.index {
                    ChunkIndex::BTree1(_) => "btree1",
                    ChunkIndex::Single { .. } => "single",
                    ChunkIndex::Implicit(_) => "implicit",
                    ChunkIndex::FixedArray(_) => "fixed array",
                    ChunkIndex::ExtensibleArray(_) => "extensible array",
                    ChunkIndex::BTree2(_) => "btree2",
                }),
            ),
        ]),
        Layout::Virtual { .. } => Json::object([("class", word("virtual"))]),
    }
}

/// What is said of an object, beside what cannot be read.
#[derive(Default)]
struct Line {
    items: Vec<(&'static str, Json)>,
    errors: Vec<Json>,
}

impl Line {
    fn add<T>(
        &mut self,
        key: &'static str,
        found: Result<T, FormatError>,
        json: impl FnOnce(T) -> Json,
    ) {
        match found {
            Ok(found) => self.items.push((key, json(found))),
            Err(error) => self.errors.push(Json::list([word(key), word(&error.to_string())])),
        }
    }
}

fn dataset(line: &mut Line, object: &Object<'_>) {
    line.add("datatype", object.datatype(), |found| Json::option(found.as_ref(), datatype));
    line.add("dataspace", object.dataspace(), |found| {
        Json::option(found.as_ref(), |found| Json::object(dataspace(found)))
    });
    line.add("layout", object.layout(), |found| Json::option(found.as_ref(), layout));
    line.add("fill", object.fill_value(), |found| {
        Json::option(found, |fill| {
            let value = match &fill.value {
                Value::Undefined => word("undefined"),
                Value::Default => word("default"),
                Value::Given(bytes) => Json::list([Json::hex(bytes)]),
            };
            let times = [("allocated", fill.allocated), ("written", fill.written)];
            let times = times.map(|(key, number)| (key, Json::of(number)));
            Json::object(times.into_iter().chain([("value", value)]))
        })
    });
    line.add("filters", object.filters(), |found| {
        Json::list(found.iter().map(|filter| {
            Json::object([
                ("number", Json::of(filter.number)),
                ("name", Json::option(filter.name.as_deref(), Json::text)),
                ("optional", Json::of(filter.optional)),
                ("options", numbers(&filter.options)),
            ])
        }))
    });
    line.add("external", object.external_files(), |found| {
        Json::list(found.iter().map(|part| {
            let nbytes = Json::option(part.nbytes, Json::of);
            Json::list([Json::text(&part.name), Json::of(part.offset), nbytes])
        }))
    });
    line.add("virtual", object.virtual_mappings(), |found| {
        Json::list(found.iter().map(|mapping| {
            let (source, shown) = (selection(&mapping.source), selection(&mapping.shown));
            Json::list([Json::text(&mapping.file), Json::text(&mapping.dataset), source, shown])
        }))
    });
    line.add("chunks", object.chunks(), |found| {
        Json::list(found.iter().map(|chunk| {
            let place = numbers(&chunk.scaled);
            let numbers = [chunk.address, chunk.stored_nbytes, chunk.filter_mask.into()];
            Json::list([place].into_iter().chain(numbers.map(Json::of)))
        }))
    });
    // Some of them alone are the same.
    let Ok(chunks) = object.chunks() else { return };
    let mut some: Vec<_> = chunks.iter().step_by(1 + chunks.len() / 5).collect();
    some.sort_by(|a, b| a.scaled.cmp(&b.scaled));
    let places: Vec<_> = some.iter().map(|chunk| chunk.scaled.clone()).collect();
    let again = object.chunks_at(&places).map(|mut again| {
        again.sort_by(|a, b| a.scaled.cmp(&b.scaled));
        again.iter().eq(some.iter().copied())
    });
    line.add("found", again, Json::of);
}

fn describe(file: &File<Stored>, object: &Object<'_>, paths: &[Vec<u8>]) -> (Json, Vec<Link>) {
    let mut line = Line::default();
    let kind = match object.kind() {
        Kind::Group => "group",
        Kind::Dataset => "dataset",
        Kind::Datatype => "datatype",
        Kind::Unknown => "unknown",
    };
    line.items.push(("address", Json::of(object.address())));
    line.items.push(("kind", word(kind)));
    line.items.push(("header", Json::of(object.header_version())));
    line.items.push(("paths", Json::list(paths.iter().map(|path| Json::text(path)))));
    line.add("references", object.reference_count(), Json::of);
    line.add("modified", object.modification_time(), |time| Json::option(time, Json::of));
    let times = Json::option(object.times(), numbers);
    line.items.push(("times", times));
    line.items.push(("comment", Json::option(object.comment(), Json::text)));
    line.items.push(("tracks_attributes", Json::of(object.tracks_attributes())));
    line.add("attributes", object.attributes(), |found| {
        Json::list(found.iter().map(|found| attribute(file, found)))
    });
    for found in object.attributes().unwrap_or_default() {
        let again = object.attribute(&found.name).map(|again| again.as_ref() == Some(&found));
        if again != Ok(true) {
            line.errors.push(word("an attribute is another one when it is looked up"));
        }
    }
    let links = object.links();
    for found in links.iter().flatten() {
        let again = object.link(&found.name).map(|again| again.as_ref() == Some(found));
        if again != Ok(true) {
            line.errors.push(word("a link is another one when it is looked up"));
        }
    }
    if let Kind::Group = object.kind() {
        line.add("tracks_links", object.tracks_links(), Json::of);
        line.add("links", links.clone(), |found| Json::list(found.iter().map(link)));
    }
    match object.kind() {
        Kind::Dataset => dataset(&mut line, object),
        Kind::Datatype => {
            line.add("datatype", object.datatype(), |found| Json::option(found.as_ref(), datatype));
        }
        _ => {}
    }
    let errors = Json::list(line.errors);
    (Json::object(line.items.into_iter().chain([("errors", errors)])), links.unwrap_or_default())
}

/// All objects that hard links lead to, the nearest to the root first.
fn dump(path: &str, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let head = |said: (&'static str, Json)| Json::object([("file", word(path)), said]).0;
    let file = match std::fs::read(path).map(|bytes| File::open(Stored(bytes))) {
        Ok(Ok(file)) => file,
        Ok(Err(error)) => return writeln!(out, "{}", head(("error", word(&error.to_string())))),
        Err(error) => return writeln!(out, "{}", head(("error", word(&error.to_string())))),
    };
    let superblock = file.superblock();
    writeln!(out, "{}", head(("base", Json::of(superblock.base))))?;
    if let Err(error) = file.extension() {
        writeln!(out, "{}", head(("error", word(&error.to_string()))))?;
    }
    let mut paths = BTreeMap::from([(superblock.root, vec![b"/".to_vec()])]);
    let mut waiting = VecDeque::from([superblock.root]);
    let mut lines = Vec::new();
    while let Some(address) = waiting.pop_front() {
        let object = match file.object(address) {
            Ok(object) => object,
            Err(error) => {
                let said = [("address", Json::of(address)), ("error", word(&error.to_string()))];
                lines.push((address, Err(Json::object(said))));
                continue;
            }
        };
        let path = paths.get(&address).and_then(|paths| paths.first()).cloned().unwrap_or_default();
        for link in object.links().unwrap_or_default() {
            let Target::Hard(target) = link.target else { continue };
            let mut its = path.clone();
            if its.last() != Some(&b'/') {
                its.push(b'/');
            }
            its.extend(&link.name);
            let known = paths.entry(target).or_default();
            if known.is_empty() {
                waiting.push_back(target);
            }
            known.push(its);
        }
        lines.push((address, Ok(object)));
    }
    for (address, line) in lines {
        let paths = paths.get(&address).map(Vec::as_slice).unwrap_or_default();
        let line = line.map(|object| describe(&file, &object, paths).0);
        writeln!(out, "{}", line.unwrap_or_else(|error| error).0)?;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::env::args().skip(1) {
        dump(&path, &mut out)?;
    }
    out.flush()
}
