//! Does a copy still find the files in which the data of external and virtual datasets lies?

use std::path::Path;

use chunkwise_engine::platform::path_from;
use chunkwise_libhdf5::binding::{hid_t, hsize_t};

use super::copier::Copier;
use super::error::{Fault, buffer};
use super::hdf5::Hdf5;

/// The longest path that Linux takes.
const PATH_MAX: usize = 4096;

impl Copier<'_> {
    /// Warn of names of other files that lead nowhere from the target's folder.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn warn_of_names(
        &mut self,
        node: usize,
        dcpl: hid_t,
        is_virtual: bool,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        let (names, source, target) = unsafe {
            let names =
                if is_virtual { self.virtual_names(dcpl)? } else { self.external_names(dcpl)? };
            (names, self.hdf5.file_name(self.source)?, self.hdf5.file_name(self.target)?)
        };
        let folder = |file: &[u8]| path_from(file).parent().map(Path::to_owned);
        let (source, target) = (folder(&source), folder(&target));
        let mut said: Vec<&[u8]> = Vec::new();
        for name in &names {
            let path = path_from(name);
            let here = name.as_slice() == b"." || path.is_absolute() || source == target;
            let found = || target.as_ref().is_some_and(|folder| folder.join(&path).exists());
            if here || said.contains(&name.as_slice()) || found() {
                continue;
            }
            said.push(name);
            let object = self.inventory.printable(node);
            let name = path.display();
            let what = format!(
                "its data lies in {name}, a relative name that leads nowhere from the copy's \
                 folder: put that file there too"
            );
            self.warn(&object, &what);
        }
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn external_names(&self, dcpl: hid_t) -> Result<Vec<Vec<u8>>, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; a name that is longer is cut.
        unsafe {
            let count = (api.H5Pget_external_count)(dcpl);
            let count = api.checked("H5Pget_external_count", count)?.unsigned_abs();
            let name_of = |number| {
                let mut name = vec![0u8; PATH_MAX + 1];
                let (mut offset, mut size): (i64, hsize_t) = (0, 0);
                let place = name.as_mut_ptr().cast();
                let status = (tree.H5Pget_external)(
                    dcpl,
                    number,
                    PATH_MAX,
                    place,
                    &raw mut offset,
                    &raw mut size,
                );
                api.checked("H5Pget_external", status)?;
                Ok(up_to_zero(name))
            };
            (0..count).map(name_of).collect()
        }
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn virtual_names(&self, dcpl: hid_t) -> Result<Vec<Vec<u8>>, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let mut count = 0;
        // SAFETY: the caller's contract; room for each name and the zero that ends it.
        unsafe {
            let status = (tree.H5Pget_virtual_count)(dcpl, &raw mut count);
            api.checked("H5Pget_virtual_count", status)?;
            let name_of = |number| {
                let name = tree.H5Pget_virtual_filename;
                let length = name(dcpl, number, std::ptr::null_mut(), 0);
                let length = api.checked_id("H5Pget_virtual_filename", length as hid_t)?;
                let mut text = buffer(length.unsigned_abs() + 1)?;
                name(dcpl, number, text.as_mut_ptr().cast(), text.len());
                Ok(up_to_zero(text))
            };
            (0..count).map(name_of).collect()
        }
    }
}

fn up_to_zero(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    text.truncate(end);
    text
}
