"""Is `chunkwise inspect --json` what docs/inspect.md says, for each key of each record?"""

import json
import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from chunkwise.cli.main import cli
from chunkwise.inspection import facts as records
from chunkwise.inspection.finding import Finding
from chunkwise.inspection.records import json_lines, plain
from chunkwise.model.layout import DatasetLayout, FileLayout
from chunkwise.remedy.fix import Fix
from tests.support.inspect_fakes import DATASET, SAMPLE, VIRTUAL, dataset, file_facts, finding

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "inspect.md").read_text()


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, ["inspect", *map(str, arguments), "--json"])
    assert result.exception is None
    return result.output


def documented_keys(record: str) -> set[str]:
    """Read the keys of one record from its table in docs/inspect.md."""
    section = re.search(rf"^### `{record}`\n(.*?)(?=^#)", DOCUMENTED, re.MULTILINE | re.DOTALL)
    assert section, f"docs/inspect.md has no section on {record}"
    return set(re.findall(r"^\| `(\w+)` \|", section[1], re.MULTILINE))


RECORDS = {
    name: getattr(records, name)
    for name in (
        "FormatFacts",
        "MetadataFacts",
        "ObjectFacts",
        "DatasetFacts",
        "ChunkFacts",
        "Source",
        "SampleFacts",
        "Encoding",
        "PatternFacts",
        "Survival",
    )
} | {"Finding": Finding, "Fix": Fix, "FileLayout": FileLayout, "DatasetLayout": DatasetLayout}


@pytest.mark.parametrize("name", list(RECORDS))
def test_each_key_of_each_record_is_documented(name: str) -> None:
    kind = RECORDS[name]
    keys = kind.KEYS if kind is Finding else [field.name for field in fields(kind)]
    assert documented_keys(name) == set(keys)


def test_each_key_of_the_file_is_documented(path: Path) -> None:
    given = json.loads(run(path))
    assert (given["format"], given["version"]) == ("chunkwise-inspect", 2)
    assert documented_keys("FileFacts") == set(given)


def test_json_has_an_object_a_line() -> None:
    facts = file_facts(dataset("/a"), dataset("/b", VIRTUAL), findings=(finding(),))
    lines = list(json_lines(facts.as_dict()))
    written = json.loads("\n".join(lines))
    (found,), written["findings"] = written["findings"], []
    assert [fix["text"] for fix in found["fixes"]] == [fix.text for fix in finding().fixes]
    assert written == json.loads(json.dumps(asdict(replace(facts, findings=())))) | {
        "format": "chunkwise-inspect", "version": 2, "verdict": "sound", "exit_code": 0,
        "error": None, "commands": [],
    }  # fmt: skip
    (line,) = [line for line in lines if '"/b"' in line]
    assert json.loads(line)["dataset"]["mappings"] == 4


def test_numbers_that_json_lacks_are_null() -> None:
    odd = finding(evidence={"ratio": float("inf"), "share": float("nan"), "count": 3})
    assert plain(odd)["evidence"] == {"ratio": None, "share": None, "count": 3}
    assert plain(DATASET) == asdict(DATASET)
    assert plain(SAMPLE) == asdict(SAMPLE)
