"""Where do the chunks of a file lie, written down for other readers and for chunkwise?"""
