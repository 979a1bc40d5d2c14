//! Which numbers can a variable hold?

use std::ffi::c_int;

use crate::api::LAST_NETCDF3_TYPE;

/// Numbers of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    nc_type: c_int,
    size: usize,
}

impl Number {
    /// The type that NumPy writes so, without the byte order: `i1` to `i8`, `u1` to `u8`,
    /// `f4`, `f8`; None for all others.
    pub fn named(name: &str) -> Option<Self> {
        let (nc_type, size) = match name {
            "i1" => (1, 1),
            "i2" => (3, 2),
            "i4" => (4, 4),
            "f4" => (5, 4),
            "f8" => (6, 8),
            "u1" => (7, 1),
            "u2" => (8, 2),
            "u4" => (9, 4),
            "i8" => (10, 8),
            "u8" => (11, 8),
            _ => return None,
        };
        Some(Self { nc_type, size })
    }

    /// Bytes of one.
    pub fn size(self) -> usize {
        self.size
    }

    /// Whether the formats before CDF-5 have it.
    pub(crate) fn is_of_netcdf3(self) -> bool {
        self.nc_type <= LAST_NETCDF3_TYPE
    }

    /// `NC_BYTE` to `NC_UINT64`.
    pub(crate) fn nc_type(self) -> c_int {
        self.nc_type
    }
}
