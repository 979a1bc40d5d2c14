"""Is a file as it was written?  Every byte that can show this is read."""
