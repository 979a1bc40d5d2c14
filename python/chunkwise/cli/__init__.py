"""The command `chunkwise`: one module per subcommand, no logic of its own."""

from chunkwise.cli.main import main

__all__ = ["main"]
