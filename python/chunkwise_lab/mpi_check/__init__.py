"""Which MPI, HDF5 and machine do ranks have, and what is known against them?"""
