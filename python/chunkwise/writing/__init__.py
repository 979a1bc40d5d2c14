"""What is assigned to datasets, how they are made, and what waits before it is in the file."""
