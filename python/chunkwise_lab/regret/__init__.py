"""Is the model right, and is the advice good?"""
