"""How does a new file appear whole, or not at all?"""
