"""How are programs that nobody can change started with the engine under them?"""
