"""How do the ranks of a program write one file together?

`chunkwise.parallel` has the names that a user imports.
"""
