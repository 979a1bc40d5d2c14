"""Which files are open, which of them in libhdf5, and what has to be written before they close?

`handle.py` keeps files and their objects, `pending.py` the data that is not in the file yet,
`sidecar.py` where chunks lie according to another file.  No `File` is made here.
"""
