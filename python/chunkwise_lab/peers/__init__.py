"""How fast is chunkwise beside other readers, and beside what the machine allows?

``make bench``, or ``python -m chunkwise_lab.peers``; docs/benchmarks.md says how to
read what it prints.
"""
