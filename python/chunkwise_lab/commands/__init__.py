"""Commands that `chunkwise` finds by their entry points: one module each, no logic of its own."""
