"""How long does one trial take, measured in this process and nowhere else?

Nothing here imports h5py before a reader needs it: a worker may load another libhdf5.
"""
