"""How is a file fixed: findings, choice, a new file, verification, times before and after?"""

from chunkwise.fixing.api import fix

__all__ = ["fix"]
