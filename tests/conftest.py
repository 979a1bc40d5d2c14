"""What must hold before any test runs?"""

import signal

# A shell starts background jobs with SIGINT ignored, and children inherit that: the
# tests of Ctrl-C would then interrupt nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
