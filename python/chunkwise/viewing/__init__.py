"""A page in the browser: how a file is stored, what its reads cost, and what would help.

The numbers are those of `inspect` and of the model; this room shows them, and computes none.
"""
