"""What repeats papers' measurements, and compares chunkwise with other readers."""
