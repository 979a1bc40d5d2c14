"""Is a file as it was written?  Each of its bytes is read that can tell."""
