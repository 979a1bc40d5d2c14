"""Is what docs/architecture.md says under 'Where is ...' there, and what it plans not yet?

And does CONTRIBUTING.md name each file that a filter touches?
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = re.compile(r"`([\w./-]+/[\w./-]*)`")


def rows(text: str) -> list[tuple[str, str]]:
    """What is looked for, and where it is."""
    table = text.partition("## Where is ...\n\n")[2].partition("\n\n")[0]
    lines = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return [(question.strip(), answer.strip()) for question, answer in lines]


def paths(answer: str) -> tuple[list[str], list[str]]:
    """Paths that an answer names: those that are there, and those that it says are planned."""
    there, _, planned = answer.partition("planned:")
    # The rest of a sentence after the plan is about today.
    planned, _, more = planned.partition(";")
    return PATH.findall(there) + PATH.findall(more), PATH.findall(planned)


def test_what_is_named_is_there_and_what_is_planned_is_not() -> None:
    found = rows((ROOT / "docs" / "architecture.md").read_text("utf-8"))
    assert len(found) > 12
    for question, answer in found:
        there, planned = paths(answer)
        assert there or planned, question
        for path in there:
            named = ROOT / path
            assert named.is_dir() if path.endswith("/") else named.is_file(), (question, path)
        for path in planned:
            assert not (ROOT / path).exists(), f"{path} is there: say so in '{question}'"


def test_each_source_file_that_the_page_names_by_its_path_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = {path for path in PATH.findall(text) if path.endswith((".py", ".rs", ".toml", ".sh"))}
    # A path may begin with a room, or with a crate's name.
    roots = [ROOT, *(ROOT / "python" / one for one in ("", "chunkwise", "chunkwise_lab"))]

    def is_there(path: str) -> bool:
        crate, _, rest = path.partition("/")
        places = [root / path for root in roots]
        return any(map(Path.is_file, [*places, ROOT / f"crates/chunkwise-{crate}/src" / rest]))

    assert len(named) > 50
    assert {path for path in named if not is_there(path)} == set()


def test_paths_are_told_from_plans() -> None:
    answer = "a `Storage` in `a/b/`; its front door is planned: `c/d/`; until then `docs/e.md`"
    assert paths(answer) == (["a/b/", "docs/e.md"], ["c/d/"])


def test_a_module_that_is_named_begins_with_a_question() -> None:
    found = rows((ROOT / "docs" / "architecture.md").read_text("utf-8"))
    for path in (path for _, answer in found for path in paths(answer)[0]):
        if path.endswith((".rs", ".py")) and not path.startswith("python/chunkwise/cli/"):
            head = (ROOT / path).read_text("utf-8").partition("\n\n")[0]
            assert "?" in head, f"{path} does not open with the question that it answers"


def test_the_example_of_a_filter_names_the_files_that_know_it() -> None:
    row = re.search(r"^\| a filter \|.*", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    assert row is not None
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/chunkwise/grammar/*.py")]
    knows = re.compile(r"^[^/#\n]*\bbzip2\b", re.IGNORECASE | re.MULTILINE)
    known = {
        path.relative_to(ROOT).as_posix()
        for path in sources
        if "tests" not in (path.stem, path.parent.name) and knows.search(path.read_text("utf-8"))
    }
    assert known == {path for path in PATH.findall(row.group()) if not path.startswith("tests/")}
    assert len(known) <= 3
