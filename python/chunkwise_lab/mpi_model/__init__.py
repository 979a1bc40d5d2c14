"""How long does a parallel write take on this many ranks, and what is the limit?"""
