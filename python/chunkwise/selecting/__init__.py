"""Which elements does an index between the brackets ask for?"""
