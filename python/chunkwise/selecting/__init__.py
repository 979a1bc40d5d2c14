"""Which elements does an index ask for, and who reads it: what stands between the brackets?"""
