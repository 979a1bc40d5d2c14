"""How are datasets created and assigned to, and what waits before it is in the file?"""
