"""Does a name print, and is a line with it still the same name when it is pasted?"""

import ast
import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.cli.terminal import PrintableConsole
from chunkwise.names import (
    encode_name,
    json_text,
    printable,
    printable_lines,
    python_text,
    shell_line,
    shell_word,
)
from chunkwise_lab.report.model import Report, Section
from tests.attack.names import hostile
from tests.support.commands import ended
from tests.support.processes import ran

NAMES = [hostile(random.Random(seed), bare="\0") for seed in range(300)]


# C0, C1, zero width and direction, separators, private use, half a pair, a tag.
RAW = (
    *("\x00", "\x1b", "\x7f", "\x85", "\x9b", "\xad", "\n", "\r", "\t"),
    *("\u200b", "\u200d", "\u200e", "\u202e", "\u2066", "\ufeff"),
    *("\u2028", "\u2029", "\ue000", "\udc80", "\U000e0001"),
)


@pytest.mark.parametrize("raw", RAW)
def test_what_commands_or_hides_is_escaped(raw: str) -> None:
    shown = printable(f"a{raw}b")
    assert shown.isprintable()
    assert shown == f"a{ascii(raw)[1:-1]}b"
    assert printable(shown) == shown


@pytest.mark.parametrize(
    "text", ["température", "温度 [°C]", "e\u0301", "😀", "Ω_{ij} µs", "שלום"]
)
def test_letters_of_all_scripts_stay(text: str) -> None:
    assert printable(text) == text


def test_ends_of_lines_stay_where_lines_are_meant() -> None:
    assert printable_lines("a\x9b\nb\r") == "a\\x9b\nb\\r"


def test_bash_reads_quoted_words_as_the_names() -> None:
    command = shell_line("printf", "%s\\0", *NAMES)
    assert command.isprintable()
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout == b"".join(encode_name(name) + b"\0" for name in NAMES)


def test_words_that_print_are_quoted_as_usual() -> None:
    assert [shell_word(word) for word in ("a.h5", "a b", "温度")] == ["a.h5", "'a b'", "'温度'"]


def test_half_a_pair_is_quoted_too() -> None:
    assert shell_word("\ud800").isascii()


def test_python_reads_texts_as_the_names() -> None:
    for name in NAMES:
        text = python_text(name)
        assert text.isprintable()
        assert ast.literal_eval(text) == name


def test_json_prints() -> None:
    text = json_text(NAMES)
    assert text.isprintable()
    assert json.loads(text) == NAMES


def test_a_console_lets_nothing_raw_through() -> None:
    out = io.StringIO()
    console = PrintableConsole(file=out, width=1000, force_terminal=True, color_system="standard")
    console.print("a\x9b31m\x1b]0;t\x07\u202eb\nc", markup=False, style="red")
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert text.replace("\n", "").isprintable()
    assert text.count("\n") == 2
    assert "\\x9b31m" in text


def test_a_report_holds_no_raw_text() -> None:
    section = Section("r1", "a\x9b", "b\u202e", "f\ng", (("d\x1b", "e\u2028"),), (), (), "quick")
    made = Report("t\x9b", (section,))
    assert made.title == "t\\x9b"
    assert made.sections[0].facts == (("d\\x1b", "e\\u2028"),)
    assert made.sections[0].about == "f\ng"
    plain = Section("r1", "a", "b", "c", (), (), (), "quick")
    assert Report("t", (plain,)).sections[0] is plain


# --- lines to paste ------------------------------------------------------------------------


def _pasted(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line in bash, with this Python's chunkwise."""
    line = f'chunkwise() {{ "{sys.executable}" -m chunkwise "$@"; }}; {line}'
    return ran(["bash", "-c", line], cwd=folder, timeout=100)


def test_the_commands_that_inspect_prints_work_as_pasted(tmp_path: Path) -> None:
    file = "x\x1b]0;t\x07 '\\\u202e$(x).h5"
    dataset = "y\x9b31m\u2028 \"'\\\n`x`"
    # Small chunks, so that there is a finding.
    with h5py.File(tmp_path / file, "w") as made:
        made.create_dataset(dataset, data=np.zeros((12_000, 2)), chunks=(1, 2))
    told = ended("inspect", file, cwd=tmp_path).stdout
    lines = [line.strip() for line in told.splitlines() if line.startswith("    chunkwise ")]
    *_, look, time_it, repack = lines
    assert [line.split()[1] for line in (look, time_it, repack)] == ["inspect", "bench", "repack"]
    done = _pasted(tmp_path, look)
    assert done.returncode == 0, done.stderr
    assert "12000x2" in done.stdout
    done = _pasted(tmp_path, f"{time_it} --budget 30 --access 100x2 --reader h5py --repeat 1")
    assert done.returncode == 0, done.stderr
    # The finding's own, and the one for all findings.
    for line in {repack, next(line for line in lines if " repack " in line)}:
        done = _pasted(tmp_path, line)
        assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / file.replace(".h5", "_repacked.h5")) as made:
        assert made[dataset].chunks == (12_000, 2)


def test_a_dataset_without_chunks_is_taken_by_any_name(tmp_path: Path) -> None:
    file = "x\x9b '.h5"
    with h5py.File(tmp_path / file, "w") as made:
        made["y\u202e\n "] = np.zeros((100, 100))
    given = ("--budget", "30", "--access", "row", "--reader", "h5py", "--repeat", "1")
    done = ended("bench", file, *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
