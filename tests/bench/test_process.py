"""Is every program ended with the call that started it, and is all that it said known?"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunkwise.measure import process
from chunkwise.measure.process import Waiting, finished, python
from chunkwise.trials.environment import usable_cpus
from chunkwise_lab.turns import busy_text, in_turns


def test_what_a_program_says_is_kept(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ['OF_OURS'])"
    done = finished(python(code), given=b"in", environment={"OF_OURS": "x"}, folder=tmp_path)
    assert done.out.decode().split() == ["in", str(tmp_path), "x"]
    assert (done.returncode, done.err) == (0, b"")
    assert done.elapsed_s > 0


def test_modules_beside_the_data_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "statistics.py").write_text("raise SystemExit('the wrong one')")
    assert finished(python("import statistics"), folder=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import sys; sys.exit('no luck')", "ended with code 1: no luck"),
        ("raise SystemExit(3)", "ended with code 3: no message"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL (out of memory?)"),
        ("import os; os.abort()", "was ended by SIGABRT"),
    ],
)
def test_how_a_program_ended_is_said(code: str, how: str) -> None:
    assert finished(python(code)).how == how


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("watches_memory", [False, True])
def test_a_program_that_does_not_end_is_ended(
    watches_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It may be ended before it can say its number.
    numbers: list[int] = []
    begin = subprocess.Popen.__init__

    def begun(self: Any, *words: Any, **options: Any) -> None:
        begin(self, *words, **options)
        numbers.append(self.pid)

    monkeypatch.setattr(subprocess.Popen, "__init__", begun)
    with pytest.raises(TimeoutError, match="no end within 2 s"):
        finished(
            python("import time; time.sleep(600)"), timeout_s=2.0, watches_memory=watches_memory
        )
    (number,) = numbers
    assert is_gone(number)


def test_a_program_that_ends_when_it_is_told_to_may_do_so(tmp_path: Path) -> None:
    file = tmp_path / "removed"
    code = (
        "import os, signal, sys, time\n"
        f"file = {str(file)!r}\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.unlink(file), sys.exit(1)))\n"
        "open(file, 'w').close()\ntime.sleep(600)"
    )
    with pytest.raises(TimeoutError):
        finished(python(code), timeout_s=2.0, patience_s=100.0)
    assert not file.exists()


def test_memory_is_watched_while_much_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, look = tmp_path / "seen", process._memory_nbytes

    def looked(pid: int) -> int:
        found = look(pid)
        if found > 64 << 20:
            seen.touch()
        return found

    monkeypatch.setattr(process, "_memory_nbytes", looked)
    # It holds the memory until that was seen.
    code = (
        "import os, time; held = bytearray(b'1' * (64 << 20)); print('x' * 500_000)\n"
        f"while not os.path.exists({str(seen)!r}): time.sleep(0.01)"
    )
    done = finished(python(code), timeout_s=120.0, watches_memory=True)
    assert len(done.out) == 500_001
    assert done.memory_nbytes > 64 << 20


def test_one_that_waits_answers_once_for_each_question() -> None:
    code = (
        "import json, sys\nprint('{\"ready\": true}', flush=True)\n"
        "for number, _ in zip(range(2), sys.stdin):\n"
        "    print(json.dumps({'value': number}), flush=True)\n"
        "sys.exit(3)"
    )
    with tempfile.TemporaryFile("w+") as log:
        waiting = Waiting([sys.executable, "-c", code], log, 60.0)
        try:
            assert waiting.answer() == {"ready": True}
            assert [waiting.ask(), waiting.ask()] == [{"value": 0}, {"value": 1}]
            assert waiting.ask() == {"failed": "ended with code 3"}
        finally:
            waiting.end()


def test_one_that_says_nothing_has_failed() -> None:
    with tempfile.TemporaryFile("w+") as log:
        waiting = Waiting([sys.executable, "-c", "import time; time.sleep(600)"], log, 0.2)
        begun = time.monotonic()
        assert waiting.answer() == {"failed": "no answer for 0 s"}
        assert time.monotonic() - begun < 60
        waiting.end()


def test_turns_begin_with_another_each_time() -> None:
    calls: list[str] = []

    def work(name: str) -> Callable[[], int | None]:
        def take() -> int | None:
            calls.append(name)
            return None if name == "c" else len(calls)

        return take

    taken = in_turns({name: work(name) for name in "abc"}, 9, lambda taken: len(taken["a"]) == 4)
    assert "".join(calls) == "abc" + "bca" + "cab" + "abc"
    assert [len(values) for values in taken.values()] == [4, 4, 0]
    assert json.dumps(taken) == '{"a": [1, 6, 8, 10], "b": [2, 4, 9, 11], "c": []}'


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_what_others_have_of_the_processors_is_seen() -> None:
    work = "import time\nend = time.time() + 0.6\nwhile time.time() < end: pass"
    share = finished(python(work)).others_share
    assert share is not None
    assert 0 <= share <= 1
    with subprocess.Popen(python(work.replace("0.6", "9"))) as other:
        try:
            beside = finished(python(work)).others_share
        finally:
            other.kill()
    # The other has a processor, or its part of one.
    assert beside is not None
    assert beside > 0.15 / usable_cpus()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_what_a_reader_runs_is_its_own(tmp_path: Path) -> None:
    """Programs that a waiting process runs to their end count as its own."""
    work = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    code = f"""import subprocess, sys
print('{{}}', flush=True)
for _ in sys.stdin:
    subprocess.run([sys.executable, '-c', {work!r}])
    print('{{}}', flush=True)
"""
    with (tmp_path / "log").open("w") as log:
        one = Waiting(python(code), log, 60.0)
        try:
            one.answer()
            begun = process.look(one._process.pid)
            one.ask()
            ended = process.look(one._process.pid)
        finally:
            one.end()
    assert begun is not None
    assert ended is not None
    # In hundredths of a second.
    assert ended[1] - begun[1] >= 0.45


def test_only_what_disturbs_is_said() -> None:
    assert busy_text([None, 0.0, 0.05]) == ""
    assert "more than 10% of the processors during 2 of 3 measurements" in busy_text(
        [0.5, None, 1, 0.0]
    )
