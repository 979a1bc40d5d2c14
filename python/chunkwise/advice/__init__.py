"""Which chunks, filters and cache suit this data, this machine and these patterns?

This package opens files, measures and writes samples; the arithmetic is in `chunkwise.model`.
"""
