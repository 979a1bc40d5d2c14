"""Does docs/findings.md explain every finding that there is, and no other?"""

import re
from pathlib import Path

from chunkwise.inspection.finding import CODES

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "findings.md").read_text()


def codes_in_use() -> set[str]:
    """Codes that the package gives to findings."""
    sources = (ROOT / "python" / "chunkwise" / "inspection").rglob("*.py")
    text = "\n".join(path.read_text() for path in sources)
    direct = re.findall(r'\bcode="([a-z0-9-]+)"', text)
    named = re.findall(r'^CANNOT_OPEN = "([a-z-]+)"', text, re.MULTILINE)
    return {*direct, *named}


def test_every_code_has_its_section() -> None:
    assert len(codes_in_use()) > 20
    assert set(re.findall(r"^### ([a-z0-9-]+)$", DOCS, re.MULTILINE)) == codes_in_use()


def test_the_table_leads_to_the_sections() -> None:
    listed = re.findall(r"^\| \[`([a-z0-9-]+)`\]\(#([a-z0-9-]+)\) \|", DOCS, re.MULTILINE)
    assert {code for code, _ in listed} == codes_in_use()
    assert all(code == anchor for code, anchor in listed)


def test_every_code_has_the_words_that_the_docs_have() -> None:
    assert set(CODES) == codes_in_use()
    for code, words in CODES.items():
        (line,) = re.findall(rf"^\| \[`{code}`\].*$", DOCS, re.MULTILINE)
        assert f"| {words} |" in line


def test_every_section_has_its_severity_and_an_example() -> None:
    for section in re.split(r"^### ", DOCS, flags=re.MULTILINE)[1:]:
        assert re.search(r"^Severity: .*(note|warning|error)", section, re.MULTILINE), section[:40]
        assert "Before" in section, section[:40]
        assert "After" in section, section[:40]
