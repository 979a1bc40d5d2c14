"""What repeats papers' measurements, and compares chunkwise with others: a user's files need none."""
