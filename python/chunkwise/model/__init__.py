"""What would another chunk shape, filter or cache cost, and which lines give it?

Arithmetic on shapes and the models of the readers' caches: nothing here opens a file.
"""
