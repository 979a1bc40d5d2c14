"""Which chunks, filters and cache suit this data, this machine and these patterns?

What opens files, measures and writes samples; the arithmetic is in `chunkwise.advise`.
"""
