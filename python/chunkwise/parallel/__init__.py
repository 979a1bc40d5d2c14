"""What many processes do with one file: under MPI, and what that takes of a machine."""
