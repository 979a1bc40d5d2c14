"""How are the papers that findings rest on named?"""

from typing import Final

OCCAM: Final = "'Profiling Write Performance of HDF5' (HPCx TR0601)"
NETCDF4: Final = "'NetCDF-4 Performance Report' (2008)"
IOTEST: Final = "'Parallel Compression I/O with HDF5' (2021)"
HYPERSLABS: Final = "'HDF5 Performance Testing with Complex Hyperslabs' (2005)"
COMPRESSED: Final = "'Improving I/O Performance When Working with HDF5 Compressed Datasets'"
