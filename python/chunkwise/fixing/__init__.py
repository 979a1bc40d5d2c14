"""How is a file mended: found, chosen, written anew, verified, and measured before and after?"""

from chunkwise.fixing.api import fix

__all__ = ["fix"]
