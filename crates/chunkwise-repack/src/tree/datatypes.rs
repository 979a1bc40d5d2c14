//! How is a committed type kept one, whoever uses it?

use chunkwise_libhdf5::binding::{DEFAULT, Handle, hid_t};

use super::copier::Copier;
use super::error::{Fault, TreeError, Writing};
use super::hdf5::Hdf5;
use super::inventory::Link;

impl Copier<'_> {
    /// The type that a copy of something of this type gets: the committed copy where it is
    /// committed, the type itself otherwise.  It stays whose it was.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn committed(&mut self, datatype: hid_t) -> Result<hid_t, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.
        unsafe {
            if api.checked("H5Tcommitted", (tree.H5Tcommitted)(datatype))? == 0 {
                return Ok(datatype);
            }
            let address = self.hdf5.address(datatype)?;
            if let Some(&known) = self.made.datatypes.get(&address) {
                return Ok(known);
            }
            self.commit(address, datatype, None)
        }
    }

    /// Commit a copy of a committed type, in a group, or without a name: the links that lead to
    /// it, if there are any, are met later.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn commit(
        &mut self,
        address: u64,
        datatype: hid_t,
        place: Option<(hid_t, &Link)>,
    ) -> Result<hid_t, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let tcpl = (tree.H5Tget_create_plist)(datatype);
            let tcpl = Handle::new(api, "H5Tget_create_plist", tcpl, api.H5Pclose)?;
            self.keep_times(address, datatype, tcpl.id)?;
            // Copies of committed types are not committed.
            let copy = (api.H5Tcopy)(datatype);
            let copy = Handle::new(api, "H5Tcopy", copy, api.H5Tclose)?;
            match place {
                Some((group, link)) => {
                    let (name, lcpl) = (link.name.as_ptr(), self.lists.of(link));
                    let status = (tree.H5Tcommit2)(group, name, copy.id, lcpl, tcpl.id, DEFAULT);
                    api.checked("H5Tcommit2", status).writing()?;
                }
                None => {
                    let status = (tree.H5Tcommit_anon)(self.target, copy.id, tcpl.id, DEFAULT);
                    api.checked("H5Tcommit_anon", status).writing()?;
                }
            }
            // One that is committed for what uses it is kept by that.
            self.keep(address, copy.id, false)?;
            // From here on it is closed with the others.
            let id = std::mem::ManuallyDrop::new(copy).id;
            self.made.datatypes.insert(address, id);
            self.made.bare_datatypes.push(address);
            Ok(id)
        }
    }

    /// Copy the attributes of types that were committed meanwhile; those may use others.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn dress_datatypes(&mut self) -> Result<(), TreeError> {
        let Hdf5 { api, tree } = self.hdf5;
        while let Some(address) = self.made.bare_datatypes.pop() {
            let Some(&copy) = self.made.datatypes.get(&address) else { continue };
            // SAFETY: the caller's contract; handles are checked.
            let dressed = unsafe {
                self.hdf5.open(self.source, address).map_err(Fault::from).and_then(|source| {
                    let tcpl = (tree.H5Tget_create_plist)(source.id);
                    let tcpl = Handle::new(api, "H5Tget_create_plist", tcpl, api.H5Pclose)?;
                    self.dress(address, source.id, copy, tcpl.id)
                })
            };
            if let Err(fault) = dressed {
                self.go_on(address, fault).map_err(|fault| fault.at(self.printable(address)))?;
            }
        }
        Ok(())
    }
}
