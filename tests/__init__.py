"""Tests of the Python package."""

# Before netCDF4 brings a second libhdf5: hdf5plugin's Blosc calls the one it finds first
# ("error during user callback" where that is not h5py's).
import h5py  # noqa: F401
import hdf5plugin  # noqa: F401
