"""What would another chunk shape, filter or cache cost, and how is it had?

Arithmetic on shapes and the models of the readers' caches: nothing here opens a file.
"""
