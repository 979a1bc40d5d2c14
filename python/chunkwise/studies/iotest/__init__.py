"""How do HDF5's parameters act under MPI, by hdf5-iotest's walk and paper 002's claims?"""
