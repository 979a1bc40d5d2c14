//! The extension module `chunkwise._native`: converts, releases the GIL, maps errors.
//!
//! Holds no algorithm.  What each class and function takes and gives is written down,
//! with types, in `python/chunkwise/_native.pyi`.

// The macros of pyo3 make items that cannot carry documentation of their own.
#![allow(missing_docs)]

mod arrays;
mod conversion;
mod dataset;
mod encoding;
mod errors;
mod examine;
mod index;
mod interrupts;
mod library;
mod listing;
mod listings;
mod metadata;
mod names;
mod netcdf;
mod opened;
mod places;
mod repack;
mod selection;
mod settings;
mod storage;
mod superblock;
mod table;
mod tree;
mod under_way;
mod walk;
mod whole;
mod writer;

use std::collections::BTreeMap;

use chunkwise_codec::FilterKind;
use chunkwise_engine::{Phase, PhaseTimes};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// CRC-32 of an array's bytes.
#[pyfunction]
#[pyo3(signature = (data, value = 0))]
fn crc32(data: &Bound<'_, numpy::PyUntypedArray>, value: u32) -> PyResult<u32> {
    arrays::with_bytes(data, |bytes| chunkwise_codec::crc32(value, bytes))
}

/// The checksum that HDF5 keeps with its metadata.
#[pyfunction]
fn metadata_checksum(data: &[u8]) -> u32 {
    chunkwise_format::checksum(data)
}

/// Threads that reading uses in this process.
#[pyfunction]
fn thread_count() -> usize {
    chunkwise_engine::thread_count()
}

/// Let each read use this many threads from now on.
#[pyfunction]
#[pyo3(signature = (threads))]
fn set_threads(py: Python<'_>, threads: Option<i64>) -> PyResult<()> {
    let wanted = threads.map(|n| usize::try_from(n).ok().and_then(std::num::NonZero::new));
    match (threads, wanted.flatten()) {
        (Some(n), wanted) if wanted.is_none() || n > settings::MOST_THREADS as i64 => {
            let most = settings::MOST_THREADS;
            let message = format!("set_threads: from 1 to {most} threads, not {n}");
            Err(errors::raise(py, "UsageError", message))
        }
        (_, wanted) => {
            chunkwise_engine::set_threads(wanted);
            Ok(())
        }
    }
}

/// What the cache of decoded chunks holds and has done.
#[pyfunction]
fn cache_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = chunkwise_engine::cache_stats();
    let dict = PyDict::new(py);
    dict.set_item("held_nbytes", stats.held_nbytes)?;
    dict.set_item("budget_nbytes", stats.budget_nbytes)?;
    dict.set_item("hits", stats.hits)?;
    dict.set_item("misses", stats.misses)?;
    dict.set_item("decoded", stats.decoded)?;
    dict.set_item("decoded_blocks", stats.decoded_blocks)?;
    Ok(dict)
}

/// Let go of all chunks that are kept for later reads.
#[pyfunction]
fn cache_clear(py: Python<'_>) {
    py.detach(chunkwise_engine::cache_clear);
}

/// Names, by HDF5's numbers, of the filters that are decoded and encoded here.
#[pyfunction]
fn filters() -> BTreeMap<i32, &'static str> {
    FilterKind::ALL.map(|kind| (kind.id(), kind.name())).into()
}

/// Begin or end measuring where the engine's time goes.
#[pyfunction]
fn set_profiling(on: bool) {
    chunkwise_engine::set_profiling(on);
}

/// Seconds by phase: by threads that read or write, and by the pool's threads.
#[pyfunction]
fn profile(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = chunkwise_engine::profile();
    let dict = PyDict::new(py);
    let decoding = FilterKind::ALL.map(|filter| (filter.name(), Phase::Decode(filter)));
    let encoding =
        FilterKind::ALL.map(|filter| (format!("encode {}", filter.name()), Phase::Encode(filter)));
    let others = [
        ("index", Phase::Index),
        ("storage", Phase::Storage),
        ("scatter", Phase::Scatter),
        ("waiting", Phase::Waiting),
        ("commit", Phase::Commit),
    ];
    let named = others.into_iter().chain(decoding).map(|(name, phase)| (name.to_string(), phase));
    for (name, phase) in named.chain(encoding) {
        let seconds = |times: &PhaseTimes| times.of(phase).as_secs_f64();
        dict.set_item(name, (seconds(&found.readers), seconds(&found.pool)))?;
    }
    Ok(dict)
}

// h5py and libhdf5 are not made for threads without Python's lock, and this has not been tried
// without it: a free-threaded Python takes its lock again.
#[pymodule(gil_used = true)]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    index::prepare(m.py(), false);
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("VIRTUAL_LAYOUT", chunkwise_metadata::readable::VIRTUAL_LAYOUT)?;
    m.add("EXTERNAL_LAYOUT", chunkwise_metadata::readable::EXTERNAL_LAYOUT)?;
    m.add_class::<library::PyLibrary>()?;
    m.add_class::<metadata::PyMetadata>()?;
    m.add_class::<metadata::PyVisit>()?;
    m.add_class::<listings::PyListings>()?;
    m.add_class::<superblock::PySuperblock>()?;
    m.add_function(wrap_pyfunction!(superblock::signature_offset, m)?)?;
    m.add_class::<dataset::PyDataset>()?;
    m.add_class::<walk::PyWalk>()?;
    m.add_class::<whole::PyWholeChunks>()?;
    m.add_class::<writer::PyWriter>()?;
    m.add_class::<selection::PySelection>()?;
    m.add_class::<storage::PyStorage>()?;
    m.add_function(wrap_pyfunction!(library::file_object, m)?)?;
    m.add_class::<table::PyChunkTable>()?;
    m.add_class::<listing::PyChunkListing>()?;
    m.add_class::<listing::PySavedChunks>()?;
    m.add_class::<netcdf::PyNetCdf>()?;
    m.add_class::<netcdf::PyNetCdfVariable>()?;
    m.add_class::<tree::PyTreeCopy>()?;
    m.add_class::<tree::PyLeads>()?;
    m.add_function(wrap_pyfunction!(tree::copy_tree, m)?)?;
    m.add_function(wrap_pyfunction!(tree::meaning, m)?)?;
    m.add_function(wrap_pyfunction!(tree::comment, m)?)?;
    m.add_function(wrap_pyfunction!(conversion::convert_elements, m)?)?;
    m.add_function(wrap_pyfunction!(conversion::edge_numbers, m)?)?;
    m.add_function(wrap_pyfunction!(crc32, m)?)?;
    m.add_function(wrap_pyfunction!(metadata_checksum, m)?)?;
    m.add_function(wrap_pyfunction!(metadata::kind_at, m)?)?;
    m.add_function(wrap_pyfunction!(filters, m)?)?;
    m.add_function(wrap_pyfunction!(encoding::encode_chunk, m)?)?;
    m.add_function(wrap_pyfunction!(index::integers, m)?)?;
    m.add_function(wrap_pyfunction!(selection::select_index, m)?)?;
    m.add_function(wrap_pyfunction!(selection::select_hyperslabs, m)?)?;
    m.add_function(wrap_pyfunction!(selection::count_chunks, m)?)?;
    m.add_function(wrap_pyfunction!(selection::combined, m)?)?;
    m.add_function(wrap_pyfunction!(selection::union_len, m)?)?;
    m.add_function(wrap_pyfunction!(thread_count, m)?)?;
    m.add_function(wrap_pyfunction!(set_threads, m)?)?;
    m.add_function(wrap_pyfunction!(cache_stats, m)?)?;
    m.add_function(wrap_pyfunction!(cache_clear, m)?)?;
    m.add("MOST_THREADS", settings::MOST_THREADS)?;
    m.add_function(wrap_pyfunction!(settings::setting, m)?)?;
    m.add_function(wrap_pyfunction!(settings::change_settings, m)?)?;
    m.add_function(wrap_pyfunction!(settings::set_default_settings, m)?)?;
    m.add_class::<opened::PyOpenDataset>()?;
    m.add_function(wrap_pyfunction!(opened::set_properties, m)?)?;
    m.add_function(wrap_pyfunction!(opened::walk_reopened, m)?)?;
    m.add_class::<examine::PyExamined>()?;
    m.add_function(wrap_pyfunction!(examine::examine_data, m)?)?;
    m.add_class::<repack::PyRechunkPlan>()?;
    m.add_class::<repack::PyJournal>()?;
    m.add_class::<repack::PyEncoders>()?;
    m.add_function(wrap_pyfunction!(repack::copy_many, m)?)?;
    m.add_class::<repack::PyCopyResult>()?;
    m.add_class::<places::PyKeptChunks>()?;
    m.add_function(wrap_pyfunction!(repack::copy_data, m)?)?;
    m.add_function(wrap_pyfunction!(repack::same_chunks, m)?)?;
    m.add_function(wrap_pyfunction!(set_profiling, m)?)?;
    m.add_function(wrap_pyfunction!(profile, m)?)?;
    Ok(())
}
