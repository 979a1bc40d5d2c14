"""Workers for tests: one whose h5py reader reads one wrong value, and one that reads right."""

import sys

_MAIN = "from chunkwise.trials.worker import main; main()"
_WRONG = """
from chunkwise.selecting import lowlevel
right = lowlevel.read_selected
def wrong(*arguments):
    array = right(*arguments)
    array[len(array) // 2] += 1
    return array
lowlevel.read_selected = wrong
"""

WRONG_H5PY = (sys.executable, "-c", _WRONG + _MAIN)
WRONG_NOTHING = (sys.executable, "-c", _MAIN)
