"""Which checksums do the values of a file have, whatever its chunks?"""
