//! How does a file become one of netCDF-4, with everything that is in it?

use std::ffi::{c_char, c_int};

use crate::api::{Api, Copying, LAST_PLAIN_TYPE, LONGEST_NAME};
use crate::variable::open_file;
use crate::writing::{NewFile, possible};
use crate::{Format, NetCdf, NetCdfError};

/// `NC_GLOBAL`: in the place of a variable, the file's own attributes.
const GLOBAL: c_int = -1;
/// `NC_EBADTYPE`: here, of a `_FillValue`.
const WRONG_TYPE: c_int = -45;
/// `NC_UNLIMITED`
const UNLIMITED: usize = 0;

type Name = [c_char; LONGEST_NAME + 1];

/// A variable as it is read and written: its number, its type, the lengths of its dimensions.
struct Variable {
    id: c_int,
    element_size: usize,
    shape: Vec<usize>,
}

impl NetCdf {
    /// Write the netCDF-3 file `source` as the netCDF-4 file `target`.
    ///
    /// Dimensions (the unlimited one stays so), variables, their types, values and attributes
    /// are the same, in the same order: `ncdump` prints the same of both.  Chunks are those that
    /// netCDF-C gives, and there are no filters.  At most `slab_nbytes` of data are held, or one
    /// element.
    ///
    /// # Errors
    /// When the source cannot be opened or read or is no netCDF-3 file, when the target exists
    /// or cannot be written.  There is no target then.
    pub fn convert(
        &self,
        source: &str,
        target: &str,
        slab_nbytes: usize,
    ) -> Result<(), NetCdfError> {
        let calls = self.writing.as_ref().map_err(Clone::clone)?;
        let copying = self.copying.as_ref().map_err(Clone::clone)?;
        let path = possible(target)?;
        self.locked(|api| {
            let source = Source { api, copying, id: open_file(api, source)? };
            let mut file = NewFile::create(api, calls, path, Format::NetCdf4)?;
            let variables = source.define(&file)?;
            // SAFETY: the file is open, and the lock is held.
            file.written("nc_enddef", unsafe { (calls.nc_enddef)(file.id) })?;
            file.begin();
            for variable in &variables {
                source.copy(&file, variable, slab_nbytes)?;
            }
            file.finish()
        })
    }
}

/// A file that is open to be copied; closed when dropped, while the lock is held.
struct Source<'a> {
    api: &'a Api,
    copying: &'a Copying,
    id: c_int,
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        // SAFETY: a file of this library, not used any more; the lock is held.
        unsafe { (self.api.nc_close)(self.id) };
    }
}

impl Source<'_> {
    /// Define all that the source has, but for the values.
    fn define(&self, file: &NewFile<'_>) -> Result<Vec<Variable>, NetCdfError> {
        let (api, copying) = (self.api, self.copying);
        let (mut dimensions, mut variables, mut attributes, mut unlimited) = (0, 0, 0, 0);
        // SAFETY: here and below, ids are those that the calls before gave, pointers lead to
        // room for what is given back, or to arrays of the variable's rank, and the lock is held.
        let status = unsafe {
            (copying.nc_inq)(
                self.id,
                &raw mut dimensions,
                &raw mut variables,
                &raw mut attributes,
                &raw mut unlimited,
            )
        };
        api.checked("nc_inq", status)?;
        self.attributes(file, "the file", GLOBAL, attributes, GLOBAL)?;

        let mut lengths = Vec::new();
        for id in 0..dimensions {
            let (mut name, mut len): (Name, usize) = ([0; LONGEST_NAME + 1], 0);
            // SAFETY: as above.
            let status =
                unsafe { (copying.nc_inq_dim)(self.id, id, name.as_mut_ptr(), &raw mut len) };
            api.checked("nc_inq_dim", status)?;
            let extent = if id == unlimited { UNLIMITED } else { len };
            let mut made = 0;
            // SAFETY: as above.
            let status =
                unsafe { (file.calls.nc_def_dim)(file.id, name.as_ptr(), extent, &raw mut made) };
            file.defined("nc_def_dim", status)?;
            lengths.push(len);
        }

        (0..variables).map(|id| self.variable(file, id, &lengths)).collect()
    }

    /// Define one variable with its attributes.
    fn variable(
        &self,
        file: &NewFile<'_>,
        id: c_int,
        lengths: &[usize],
    ) -> Result<Variable, NetCdfError> {
        let (api, copying) = (self.api, self.copying);
        let mut rank = 0;
        // SAFETY: here and below, as in `define`.
        let status = unsafe { (api.nc_inq_varndims)(self.id, id, &raw mut rank) };
        api.checked("nc_inq_varndims", status)?;
        let mut of = vec![0; usize::try_from(rank).unwrap_or(0)];
        let (mut name, mut nc_type, mut attributes): (Name, c_int, c_int) =
            ([0; LONGEST_NAME + 1], 0, 0);
        // SAFETY: as above.
        let status = unsafe {
            (copying.nc_inq_var)(
                self.id,
                id,
                name.as_mut_ptr(),
                &raw mut nc_type,
                std::ptr::null_mut(),
                of.as_mut_ptr(),
                &raw mut attributes,
            )
        };
        api.checked("nc_inq_var", status)?;
        if nc_type > LAST_PLAIN_TYPE {
            let reason = "it has types that netCDF-3 has not".to_string();
            return Err(NetCdfError::Refused { reason });
        }
        let mut element_size = 0;
        // SAFETY: as above; the type's name is not asked for.
        let status = unsafe {
            (api.nc_inq_type)(self.id, nc_type, std::ptr::null_mut(), &raw mut element_size)
        };
        api.checked("nc_inq_type", status)?;
        let mut made = 0;
        // SAFETY: as above.
        let status = unsafe {
            (file.calls.nc_def_var)(
                file.id,
                name.as_ptr(),
                nc_type,
                rank,
                of.as_ptr(),
                &raw mut made,
            )
        };
        file.defined("nc_def_var", status)?;
        self.attributes(file, &text(&name), id, attributes, made)?;
        let shape = of.iter().filter_map(|&d| lengths.get(usize::try_from(d).ok()?)).copied();
        Ok(Variable { id, element_size, shape: shape.collect() })
    }

    /// Copy the attributes of one variable, or of the file; `owner` is its name, for messages.
    fn attributes(
        &self,
        file: &NewFile<'_>,
        owner: &str,
        of: c_int,
        count: c_int,
        to: c_int,
    ) -> Result<(), NetCdfError> {
        for number in 0..count {
            let mut name: Name = [0; LONGEST_NAME + 1];
            // SAFETY: as in `define`.
            let status =
                unsafe { (self.copying.nc_inq_attname)(self.id, of, number, name.as_mut_ptr()) };
            self.api.checked("nc_inq_attname", status)?;
            // SAFETY: as above.
            let status =
                unsafe { (self.copying.nc_copy_att)(self.id, of, name.as_ptr(), file.id, to) };
            if status == WRONG_TYPE {
                let attribute = text(&name);
                let reason = format!(
                    "the attribute {attribute} of '{owner}' has another type than '{owner}' \
                     itself, which netCDF-4 does not allow; remove it first: ncatted -a \
                     {attribute},{owner},d,, FILE"
                );
                return Err(NetCdfError::Refused { reason });
            }
            file.written("nc_copy_att", status)?;
        }
        Ok(())
    }

    /// Copy the values of one variable, slab by slab.
    fn copy(
        &self,
        file: &NewFile<'_>,
        variable: &Variable,
        slab_nbytes: usize,
    ) -> Result<(), NetCdfError> {
        let Variable { id, element_size, ref shape } = *variable;
        if shape.contains(&0) {
            return Ok(());
        }
        let block = slab(shape, element_size, slab_nbytes);
        let mut bytes = vec![0_u8; block.iter().product::<usize>() * element_size];
        // A scalar is one element, whose start and count are not looked at.
        let mut start = vec![0; shape.len().max(1)];
        loop {
            let mut count = vec![1; shape.len().max(1)];
            for (axis, (&len, &side)) in shape.iter().zip(&block).enumerate() {
                count[axis] = side.min(len - start[axis]);
            }
            // SAFETY: as in `define`; there is room for a whole block.
            let status = unsafe {
                (self.api.nc_get_vara)(
                    self.id,
                    id,
                    start.as_ptr(),
                    count.as_ptr(),
                    bytes.as_mut_ptr().cast(),
                )
            };
            self.api.checked("nc_get_vara", status)?;
            // SAFETY: as above.  Variables have the same numbers in both files.
            let status = unsafe {
                (file.calls.nc_put_vara)(
                    file.id,
                    id,
                    start.as_ptr(),
                    count.as_ptr(),
                    bytes.as_ptr().cast(),
                )
            };
            file.written("nc_put_vara", status)?;
            if !step(&mut start, shape, &block) {
                return Ok(());
            }
        }
    }
}

/// A name as text.
fn text(name: &Name) -> String {
    let bytes: Vec<u8> = name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The largest block of whole trailing dimensions of at most this many bytes, or one element.
fn slab(shape: &[usize], element_size: usize, nbytes: usize) -> Vec<usize> {
    let mut block = vec![1; shape.len()];
    let mut left = (nbytes / element_size.max(1)).max(1);
    for axis in (0..shape.len()).rev() {
        block[axis] = shape[axis].min(left).max(1);
        if block[axis] < shape[axis] {
            break;
        }
        left /= block[axis];
    }
    block
}

/// Go on to the next block in C order; false behind the last.
fn step(start: &mut [usize], shape: &[usize], block: &[usize]) -> bool {
    for axis in (0..shape.len()).rev() {
        start[axis] += block[axis];
        if start[axis] < shape[axis] {
            return true;
        }
        start[axis] = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_cover_an_array_once() {
        for (shape, nbytes) in [
            (vec![], 1),
            (vec![5], 8),
            (vec![3, 4, 5], 24),
            (vec![3, 4, 5], 80),
            (vec![3, 4, 5], 1),
            (vec![7, 1, 9], 1 << 20),
        ] {
            let block = slab(&shape, 4, nbytes);
            assert!(block.iter().product::<usize>() * 4 <= nbytes.max(4));
            let (mut start, mut covered) = (vec![0; shape.len().max(1)], 0);
            loop {
                covered += shape
                    .iter()
                    .zip(&block)
                    .zip(&start)
                    .map(|((&len, &side), &at)| side.min(len - at))
                    .product::<usize>();
                if !step(&mut start, &shape, &block) {
                    break;
                }
            }
            assert_eq!(covered, shape.iter().product::<usize>(), "{shape:?} {nbytes}");
        }
    }
}
