"""Which files are open, which of them in libhdf5, and what has to be written before they close?"""
