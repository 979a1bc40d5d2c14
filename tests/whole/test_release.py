"""Do the package, its citation and its conda recipe state the same version and needs?"""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).resolve().parents[2]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def version() -> str:
    return str(tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"])


def test_the_version_is_one() -> None:
    assert str(read("CITATION.cff")["version"]) == version()
    assert read("packaging/conda/recipe.yaml")["context"]["version"] == version()


def test_the_citation_has_what_its_format_requires() -> None:
    cited = read("CITATION.cff")
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert all(author.get("name") or author.get("family-names") for author in cited["authors"])


def test_the_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    recipe = read("packaging/conda/recipe.yaml")
    needs = [need.partition(";")[0].strip() for need in project["project"]["dependencies"]]
    stated = [
        one if isinstance(one, str) else one["then"] for one in recipe["requirements"]["run"]
    ]
    assert sorted(one.replace(" ", "") for one in stated) == sorted(
        [*needs, f"python{project['project']['requires-python']}"]
    )
    builds = [re.split("[<>=]", one)[0] for one in project["build-system"]["requires"]]
    assert set(builds) <= {str(one).split()[0] for one in recipe["requirements"]["host"]}
    assert set(recipe["about"]["license_file"]) == set(project["project"]["license-files"])


def test_the_forge_runs_what_there_is_on_what_is_supported() -> None:
    workflows = {name: read(f".github/workflows/{name}.yml") for name in ("test", "release")}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    called = set()
    for workflow in workflows.values():
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                called |= set(re.findall(r"^make (\S+)", step.get("run", ""), re.MULTILINE))
        # The index is that of the action that publishes, and it trusts the workflow.
        assert "secrets" not in str(workflow)
        assert not re.search(r"pypi\.org|pythonhosted|crates\.io", str(workflow))
    assert called == {
        "check", "release-check", "rust-test", "sdist", "smoke-arm", "smoke-musl", "smoke-windows",
        "test", "test-python", "test-versions", "try-wheel", "wheels",
    }  # fmt: skip
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in called)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = workflows["test"]["jobs"]["python"]["strategy"]["matrix"]["python"]
    assert f">={pythons[0]}" == project["requires-python"]
    assert workflows["release"]["jobs"]["publish"]["permissions"] == {"id-token": "write"}
