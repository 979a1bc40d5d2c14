"""Who does what a program asks for, the engine or libhdf5?

`bindings.py` knows what the engine needs to read an open dataset, `reading.py` decides,
`indexing.py` tells which indices h5py takes, `transfers.py` reads into another type or the
caller's array, `conversions.py` tells which types NumPy converts exactly as libhdf5 does,
`through_h5py.py` asks libhdf5 for the rest.
"""
