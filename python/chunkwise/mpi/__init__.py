"""How do the ranks of a program write one file together?"""
