//! Is what small files hold that h5py has written what they were written with?
//!
//! `tests/support/metadata_files.py` writes them; they are the corpus of `fuzz/`, behind a head of
//! 64 bytes.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use chunkwise_format::{ChunkIndex, Class, File, Kind, Layout, Object, Problem, Target, Value};

fn sample(name: &str) -> File<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/format");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    File::open(bytes[64..].to_vec()).unwrap()
}

/// What a path of hard links leads to.
fn at<'f>(file: &'f File<Vec<u8>>, path: &str) -> Object<'f> {
    path.split('/').filter(|name| !name.is_empty()).fold(file.root().unwrap(), |object, name| {
        match object.link(name.as_bytes()).unwrap().unwrap().target {
            Target::Hard(address) => file.object(address).unwrap(),
            target => panic!("{name} leads to {target:?}"),
        }
    })
}

#[test]
fn links_are_those_of_old_and_new_groups() {
    for name in ["groups-old", "groups-new", "groups-narrow"] {
        let file = sample(name);
        let group = at(&file, "group");
        let links: BTreeMap<_, _> =
            group.links().unwrap().into_iter().map(|link| (link.name, link.target)).collect();
        assert_eq!(links.len(), 11, "{name}");
        assert_eq!(links[&b"soft 2"[..]], Target::Soft(b"/group/group/x".to_vec()));
        let (file_name, path) = (b"other.h5".to_vec(), b"/there".to_vec());
        assert_eq!(links[&b"external"[..]], Target::External { file: file_name, path });
        assert_eq!(at(&file, "group/within/up").address(), file.superblock().root);
        assert_eq!(at(&file, "again").address(), group.address());
        assert_eq!(group.reference_count(), Ok(2));
        assert_eq!(group.link(b"soft 9"), Ok(None));
    }
}

#[test]
fn many_links_and_attributes_have_an_order() {
    for name in ["many-old", "many-new"] {
        let file = sample(name);
        let group = at(&file, "group");
        let mut links = group.links().unwrap();
        assert!(links.is_sorted_by(|a, b| a.name < b.name));
        assert!(group.tracks_links().unwrap());
        links.sort_by_key(|link| link.creation_order);
        assert_eq!((links.len(), &*links[1].name), (60, &b"link 7"[..]));
        let d = at(&file, "d");
        let attribute = d.attribute(b"attribute 29").unwrap().unwrap();
        assert_eq!((attribute.creation_order, attribute.value.len()), (Some(29), 29 * 5 * 8));
        assert_eq!(d.attributes().unwrap().len(), 30);
        assert_eq!(d.attribute(b"attribute 30"), Ok(None));
    }
}

#[test]
fn large_and_shared_attributes_are_elsewhere() {
    let file = sample("huge");
    let value = file.root().unwrap().attribute(b"huge 2").unwrap().unwrap().value;
    assert_eq!(value, vec![0; 9002]);
    for name in ["shared-list", "shared-tree"] {
        let file = sample(name);
        assert_eq!(file.extension().unwrap().shared_messages.len(), 2);
        let d = at(&file, "d4");
        assert_eq!(d.attributes().unwrap().len(), 3);
        assert_eq!(d.attribute(b"a2").unwrap().unwrap().value[8..16], 1u64.to_le_bytes());
        assert_eq!(d.dataspace().unwrap().unwrap().shape(), [4, 30]);
    }
}

#[test]
fn values_have_types() {
    for name in ["values-old", "values-new"] {
        let file = sample(name);
        let (records, shared) = (at(&file, "records"), at(&file, "type"));
        assert_eq!((records.kind(), shared.kind()), (Kind::Dataset, Kind::Datatype));
        let datatype = records.datatype().unwrap().unwrap();
        assert_eq!((datatype.committed, datatype.nbytes), (Some(shared.address()), 58));
        let Class::Compound(members) = datatype.class else { panic!() };
        let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
        assert_eq!(names, [b"a", b"b", b"c", b"d"]);
        let reference = records.attribute(b"reference").unwrap().unwrap();
        let found = file.reference(0, &reference.value).unwrap().unwrap();
        assert_eq!(found.object, shared.address());
        let region = records.attribute(b"region").unwrap().unwrap();
        let found = file.reference(1, &region.value).unwrap().unwrap();
        assert_eq!((found.object, found.region.is_some()), (records.address(), true));
        let texts = records.attribute(b"texts").unwrap().unwrap();
        let (count, collection, number) = file.variable(&texts.value[16..32]).unwrap().unwrap();
        assert_eq!(file.collection(collection).unwrap().get(number), Some(&b"two"[..]));
        assert_eq!((count, file.variable(&texts.value[32..])), (3, Ok(None)));
        let filled = at(&file, "filled");
        let fill = filled.fill_value().unwrap().unwrap();
        assert_eq!(fill.value, Value::Given(vec![7, 0]));
        assert_eq!(filled.comment(), Some(&b"a comment"[..]));
        let outside = at(&file, "outside").external_files().unwrap();
        assert_eq!((&*outside[1].name, outside[1].nbytes), (&b"b.raw"[..], Some(2)));
    }
}

#[test]
fn chunks_are_listed_and_looked_up() {
    for (name, deepest) in [("chunks-old", 1), ("chunks-new", 4), ("chunks-narrow", 1)] {
        let file = sample(name);
        let mut indexes = Vec::new();
        for link in file.root().unwrap().links().unwrap() {
            let d = at(&file, std::str::from_utf8(&link.name).unwrap());
            let Some(Layout::Chunked(layout)) = d.layout().unwrap() else { panic!() };
            let chunks = d.chunks().unwrap();
            let space = d.dataspace().unwrap().unwrap();
            let grid = space.shape().iter().zip(&layout.chunk).map(|(n, c)| n.div_ceil(*c));
            assert_eq!(chunks.len() as u64, grid.product::<u64>(), "{name}");
            for chunk in &chunks {
                let found = d.chunks_at(std::slice::from_ref(&chunk.scaled)).unwrap();
                assert_eq!(found, std::slice::from_ref(chunk), "{name}");
            }
            indexes.push(std::mem::discriminant(&layout.index));
        }
        indexes.dedup();
        assert!(indexes.len() >= deepest, "{name}");
    }
    let file = sample("chunks-paged");
    let places: Vec<_> = at(&file, "extensible").chunks().unwrap();
    let places: Vec<_> = places.iter().map(|chunk| chunk.scaled[0]).collect();
    assert_eq!(places, [0, 1, 2, 3, 4, 5, 6, 4500, 8999]);
    let early = at(&sample("chunks-new"), "early").layout().unwrap();
    let Some(Layout::Chunked(layout)) = early else { panic!() };
    assert!(matches!(layout.index, ChunkIndex::Implicit(Some(_))));
}

#[test]
fn virtual_datasets_have_mappings() {
    for name in ["virtual-old", "virtual-new"] {
        let file = sample(name);
        let mappings = at(&file, "v").virtual_mappings().unwrap();
        let names: Vec<_> = mappings.iter().map(|mapping| &*mapping.file).collect();
        assert_eq!(names, [&b"a_long_name.h5"[..], b"a_long_name.h5", b".", b"a_long_name.h5"]);
        assert!(mappings.iter().all(|mapping| mapping.dataset == b"dataset"));
    }
}

#[test]
fn what_is_not_known_is_named() {
    let file = sample("filtered");
    let group = at(&file, "of 20");
    let error = group.links().unwrap_err();
    assert_eq!(error.object, Some(group.address()));
    assert_eq!(error.problem, Problem::Unsupported("filters"));
    assert!(error.to_string().contains("which is not read here"));
}
