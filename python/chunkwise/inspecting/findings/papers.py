"""How are the papers that findings rest on named?"""

from typing import Final

OCCAM: Final = "'Profiling Write Performance of HDF5' (HPCx TR0601)"
NETCDF4: Final = "'NetCDF-4 Performance Report' (2008)"
COMPRESSED: Final = "'Improving I/O Performance When Working with HDF5 Compressed Datasets'"
