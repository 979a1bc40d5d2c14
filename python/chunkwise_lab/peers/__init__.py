"""How fast is chunkwise beside other readers, and beside what the machine allows?"""
