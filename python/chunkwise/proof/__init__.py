"""Does a new file hold what its source holds, as a reader meets it?"""
