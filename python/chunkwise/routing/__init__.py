"""Who does what a program asks for, the engine or libhdf5?"""
