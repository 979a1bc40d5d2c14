"""Does the model of many processors add up, and does all that it needs run?

On tiny arrays, and with a stand-in for the compiled programs: how fast anything is is the bench's
business.
"""

import json
import math
import sys
from pathlib import Path

import pytest

from chunkwise_lab.peers import cores, schedule
from chunkwise_lab.peers.cores import Machine, Simulated, Work
from tests.support.versions import needs_chunk_iter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no threads can be pinned")
WORK = Work("w", "f", ("a", "b"), 100, 1000, 2000, 4000)
FAST = Machine(math.inf, math.inf)
# Sleeps without a processor: threads share the chunks evenly, and each dataset costs 1 ms more.
SLEEPER = """
threads, chunk_s, chunks, datasets, latency_s = map(float, sys.argv[2:])
bare_s = -(-chunks // threads) * datasets * chunk_s
engine_s = bare_s + 1e-3 * datasets + latency_s
print(json.dumps({"engine_s": engine_s, "bare_s": bare_s, "busy": 0.25}))
"""
TRIAD = """
print('{"ready": {}}', flush=True)
for line in sys.stdin:
    print('{"value": 0.5, "checksums": {}}', flush=True)
"""


def program(path: Path, code: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport json, sys\n{code}")
    path.chmod(0o755)
    return path


@pytest.fixture
def simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "SIMULATION", program(tmp_path / "cores", SLEEPER))
    monkeypatch.setattr(schedule, "LIMITS", program(tmp_path / "limits", TRIAD))


def far(latency_s: float) -> Work:
    return Work("w", "f", ("a",), 100, 1000, 2000, 4000, latency_s)


def test_a_read_takes_as_long_as_what_bounds_it() -> None:
    simulated = Simulated(rounds=25, own_s=0.5, busy=0)
    found = cores.estimate(WORK, 0.25, 0.1, simulated, FAST)
    assert found.seconds == pytest.approx(0.25 + 25 * 0.1 + 0.5)
    assert found.bound == "decoding"
    assert found.parts["memory"] == found.parts["network"] == 0
    assert cores.estimate(WORK, 0.25, 0.01, simulated, FAST).bound == "handing over"
    assert cores.estimate(WORK, 9.0, 0.1, simulated, FAST).bound == "opening"
    # Stored bytes once, results twice.
    slow = cores.estimate(WORK, 0.25, 0.1, simulated, Machine(1000, math.inf))
    assert (slow.seconds, slow.bound) == (0.25 + (2000 + 2 * 4000) / 1000, "memory")
    # What is waited for counts even where decoding takes longer.
    assert cores.estimate(far(2.0), 0, 0.1, simulated, FAST).seconds == pytest.approx(5.0)
    network = cores.estimate(far(2.0), 0, 0.1, simulated, Machine(math.inf, 500))
    assert (network.seconds, network.bound) == (2 + 2000 / 500, "network")


def test_memory_grows_with_processors_and_then_with_sockets() -> None:
    found = [cores.memory_of(n, 10, 165) for n in (1, 16, 17, 64, 65, 128)]
    assert found == [10, 160, 165, 165, 330, 330]


@pytest.mark.usefixtures("simulation")
@pytest.mark.parametrize("chunk_s", [2e-6, 0.125])
def test_of_the_simulation_chunks_are_told_from_what_does_not_grow(chunk_s: float) -> None:
    for threads, rounds in ((1, 200), (2, 100), (16, 14), (64, 4)):
        found = cores.simulate(WORK, threads, chunk_s)
        assert found.busy == 0.25
        # 2 datasets of 100 chunks; of one thread fewer of them tell as much.
        assert found.rounds == pytest.approx(rounds)
        assert found.own_s == pytest.approx(2e-3, abs=1e-9)
    assert cores.simulate(far(0.05), 4, chunk_s).own_s == pytest.approx(1e-3, abs=1e-9)
    # No noise makes a machine faster than all its processors.
    assert cores.simulate(far(0.05), 64, chunk_s).rounds == pytest.approx(2)


@needs_chunk_iter
@pytest.mark.slow
@pytest.mark.usefixtures("simulation")
def test_everything_is_measured_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(cores, "LATENCY_S", 0.002)
    options = ["3,80", "--small", "--repeat", "1", "--folder", str(tmp_path), "--line", "0.5"]
    assert cores.main([*options, "--json", "--bandwidth", "200"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memory"] == {"1": 2 * cores.STREAM_NBYTES, "2": 2 * cores.STREAM_NBYTES}
    assert len(found["works"]) == 4
    for work in found["works"]:
        assert work["moved_nbytes"] == work["stored_nbytes"] + 2 * 4 * work["elements"]
        assert set(work["measured"]) == {"1", "2"}
        assert set(work["estimates"]) == {"1", "2", "3", "80"}
        for one in work["estimates"].values():
            longest = max(one["parts"].values())
            assert longest <= one["seconds"] <= sum(one["parts"].values())
    assert [one["latency_s"] for one in found["works"]] == [0, 0, 0, 0.002]
    assert [len(one["datasets"]) for one in found["works"]] == [1, 1, 16, 1]
    text = "\n".join(cores.lines(found, [3, 80]))
    assert text.count("\n| ") == 4 * 2 + 2 * 2
    assert "200 GB/s for each socket of 64" in text
    assert "leaves out" in text


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cores.main(["0"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        cores.main(["--help"])
    assert ended.value.code == 0
    assert "--bandwidth GB/S" in capsys.readouterr().out


def test_a_simulation_that_is_not_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "SIMULATION", tmp_path / "none")
    assert cores.main(["--folder", str(tmp_path)]) == 1
    assert "make bench ONLY=cores" in capsys.readouterr().err
