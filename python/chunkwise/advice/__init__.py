"""Which chunks, filters and cache suit this data, this machine and these patterns?"""
