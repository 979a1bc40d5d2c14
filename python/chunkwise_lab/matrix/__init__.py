"""In which cases is chunkwise slower than h5py?  `make bench ONLY=matrix`."""
