"""How are files read that no path of this machine leads to: by URL, or as file objects?

`opening.py` finds out what a URL or a file object is, and makes a `Source` of it.  A source gives
bytes: to libhdf5 through `stream.py`, which reads the file's structures by blocks that are kept
(`blocks.py`), and to the engine, which asks for the chunks of a read together.  Both come from one
of the `stores.py`, whose requests are made, watched and repeated in `requests.py`.

fsspec is optional, and imported when a URL is opened.
"""
