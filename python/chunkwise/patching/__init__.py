"""How do programs that use h5py read through the engine, unchanged?"""

from chunkwise.patching.installed import Patch, patch_h5py, patch_stats, unpatch_h5py

__all__ = ["Patch", "patch_h5py", "patch_stats", "unpatch_h5py"]
