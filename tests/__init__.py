"""Tests of the Python package."""

# Before netCDF4 brings a second libhdf5: hdf5plugin's Blosc calls the one it finds first
# ("error during user callback" where that is not h5py's).  Workers of xdist inherit
# HDF5_PLUGIN_PATH, by which libhdf5 loads what is not told whose functions it is to call:
# only `register` tells it.
import h5py  # noqa: F401
import hdf5plugin

hdf5plugin.register()
