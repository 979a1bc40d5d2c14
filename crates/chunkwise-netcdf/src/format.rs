//! Which file formats does netCDF-C write, and what can each of them hold?

use std::ffi::c_int;

use crate::Number;
use crate::api::{DATA_64BIT, NETCDF4, NEW_FILE, OFFSET_64BIT};

/// A file format.
///
/// All but [`Format::NetCdf4`] are netCDF-3's: no groups, no chunks and no filters, and
/// every number big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// HDF5.
    NetCdf4,
    /// CDF-1: offsets of 32 bits.
    Classic,
    /// CDF-2: offsets of 64 bits.
    Offset64Bit,
    /// CDF-5: sizes of 64 bits, and all types of numbers.
    Data64Bit,
}

impl Format {
    /// The format of that name: `netcdf4`, `classic`, `64bit-offset` or `64bit-data`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "netcdf4" => Some(Self::NetCdf4),
            "classic" => Some(Self::Classic),
            "64bit-offset" => Some(Self::Offset64Bit),
            "64bit-data" => Some(Self::Data64Bit),
            _ => None,
        }
    }

    /// What `nc_create` takes to make a new file of it.
    pub(crate) fn mode(self) -> c_int {
        NEW_FILE
            | match self {
                Self::NetCdf4 => NETCDF4,
                Self::Classic => 0,
                Self::Offset64Bit => OFFSET_64BIT,
                Self::Data64Bit => DATA_64BIT,
            }
    }

    /// Whether it is one of netCDF-3's.
    pub fn is_netcdf3(self) -> bool {
        self != Self::NetCdf4
    }

    /// Whether it has this type of numbers.
    pub(crate) fn has(self, number: Number) -> bool {
        match self {
            Self::NetCdf4 | Self::Data64Bit => true,
            Self::Classic | Self::Offset64Bit => number.is_of_netcdf3(),
        }
    }
}
