"""What repeats papers' measurements, and compares chunkwise with others: a user's files need none.

pyproject.toml registers its commands as ``chunkwise.commands``; `chunkwise` imports nothing of it.
"""
