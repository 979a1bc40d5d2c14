"""A page in the browser: how a file is stored, what its reads cost, and what would help."""
