"""Measure, explain and fix slow HDF5 and netCDF-4 input and output."""
