"""Programs that nobody can change: how they are started with the engine under them."""
