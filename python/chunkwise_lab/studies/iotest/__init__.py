"""What do HDF5's parameters do under MPI, by hdf5-iotest's walk and paper 002's claims?"""
