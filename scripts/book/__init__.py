"""Which pages of the site does the code write?  `docs/conf.py` calls this before Sphinx reads.

They go to `docs/_built/`, which is not kept: the commands (`commands.py`), the Python interface
(`names.py`), the studies with their plots (`plots.py`), and this repository's own
pages that lie outside of `docs/` (`pages.py`).
"""
