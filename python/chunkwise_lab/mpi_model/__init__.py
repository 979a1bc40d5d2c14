"""How long does a parallel write take on so many ranks, and what is the limit?"""
