"""How do programs that use h5py read through the engine, unchanged?

`patch_h5py` replaces the methods of `h5py` that read and write.  `methods.py` has them, and asks
`chunkwise.routing`, as chunkwise's own datasets do; `program.py` runs a program patched.
"""

from chunkwise.patching.installed import Patch, patch_h5py, patch_stats, unpatch_h5py

__all__ = ["Patch", "patch_h5py", "patch_stats", "unpatch_h5py"]
