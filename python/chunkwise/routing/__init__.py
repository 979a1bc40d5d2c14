"""Who does what a program asks for, the engine or libhdf5?

`eligibility.py` says which datasets the engine reads, `bindings.py` keeps what it needs for that,
`reading.py` decides for each index, `indexing.py` says which indices h5py takes, `transfers.py`
reads into another type or the caller's array, `conversions.py` says which types the engine
converts exactly as libhdf5 does, `through_h5py.py` asks libhdf5 for the rest.
"""
