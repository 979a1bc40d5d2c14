"""How are files read that have no path on this machine: by URL, or as file objects?

`opening.py` finds out what a URL or a file object is, and makes a `Source` of it.  `ros3.py` makes
one of a file that h5py has opened by HDF5's own driver.  A source gives bytes: to libhdf5 through
an object that reads the file's structures in blocks that are kept (`blocks.py`), and to the
engine, which asks for all chunks of a read together.  Both come from one of the `stores.py`;
`requests.py` makes, watches and repeats their requests.  Which ranges are joined to one request
the engine decides (`storage/joining.rs`).

fsspec is optional, and imported when a URL is opened.
"""
