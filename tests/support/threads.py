"""Works that run at the same time, and what is raised in one of them."""

import threading
from collections.abc import Callable, Sequence

# A thread that takes so long hangs: a minute is what a busy machine may take.
HANG_S = 240


def run_in_threads(works: Sequence[Callable[[], None]]) -> None:
    """Run all at once; what one of them raises is raised here."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(works))

    def guarded(work: Callable[[], None]) -> None:
        try:
            gate.wait(HANG_S)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(w,), daemon=True) for w in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
