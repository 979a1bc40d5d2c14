"""Does the model count what it says, and are known parameters found again from runs?"""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import UsageError
from chunkwise_lab.mpi_model.calibrate import OTHER, Run, calibrate, left_out
from chunkwise_lab.mpi_model.model import (
    PHASES,
    Job,
    Machine,
    chunk_nbytes_needed,
    predict,
    ranks_of_one_index,
    streamed,
)

MIB = 1 << 20
positive = st.floats(1e-6, 1e-3)
machines = st.builds(
    Machine,
    encode_rate=st.floats(1e7, 1e9),
    verify_rate=st.floats(1e8, 4e9),
    rank_rate=st.floats(1e8, 1e10),
    node_rate=st.floats(1e9, 1e12),
    storage_rate=st.floats(1e10, 1e13),
    index_s=positive,
    exchange_s=positive,
    request_s=positive,
    fixed_s=st.floats(0, 5),
    overlap=st.floats(0, 1),
)
jobs = st.builds(
    Job,
    nbytes=st.integers(1, 10**14),
    chunk_nbytes=st.integers(1 << 10, 1 << 30),
    ratio=st.floats(0.01, 1.1),
    n_ranks=st.integers(1, 10_000),
    n_cores=st.none() | st.integers(1, 10_000),
    batch=st.integers(1, 1000),
    source_nbytes=st.integers(0, 10**14),
    verify=st.booleans(),
)


def test_each_phase_by_hand() -> None:
    machine = Machine(
        encode_rate=100e6, verify_rate=1e9, rank_rate=1e9, node_rate=2e9, index_s=15e-6,
        exchange_s=1e-4, request_s=1e-5, fixed_s=1.0, overlap=0.0,
    )  # fmt: skip
    job = Job(
        nbytes=64_000 * 10**6, chunk_nbytes=10**6, ratio=0.5, n_ranks=4, batch=100,
        source_nbytes=8 * 10**9,
    )  # fmt: skip
    found = predict(machine, job)
    assert found.phases == pytest.approx(
        {
            "read": 8e9 / 2e9,
            "encode": 64e9 / 400e6,
            "exchange": 160 * 1e-4 + 480 * 1e-5,
            "allocate": 64_000 * 15e-6,
            "write": 32e9 / 2e9,
            # Four cores decode 4 GB/s: as long as 32 GB at 2 GB/s take to be read.
            "verify": 16.0,
        }
    )
    assert found.elapsed_s == pytest.approx(1 + sum(found.phases.values()))
    assert found.limit == "encode"
    at_once = predict(replace(machine, overlap=1.0), job)
    assert at_once.elapsed_s == pytest.approx(1 + 160 + 16)


@given(machines, jobs)
def test_a_job_takes_between_its_longest_phase_and_all_of_them(machine: Machine, job: Job) -> None:
    found = predict(machine, job)
    assert set(found.phases) == set(PHASES)
    assert all(seconds >= 0 for seconds in found.phases.values())
    longest, all_of_them = max(found.phases.values()), sum(found.phases.values())
    assert found.elapsed_s >= longest + machine.fixed_s - 1e-9
    assert found.elapsed_s <= (all_of_them + machine.fixed_s) * (1 + 1e-9) + 1e-9
    assert found.phases[found.limit] == longest


@given(machines, jobs)
def test_a_better_machine_is_not_slower(machine: Machine, job: Job) -> None:
    before = predict(machine, job).elapsed_s
    for name in ("encode_rate", "verify_rate", "rank_rate", "node_rate", "storage_rate"):
        better = replace(machine, **{name: 2 * getattr(machine, name)})
        assert predict(better, job).elapsed_s <= before * (1 + 1e-9)
    for name in ("index_s", "exchange_s", "request_s"):
        better = replace(machine, **{name: getattr(machine, name) / 2})
        assert predict(better, job).elapsed_s <= before * (1 + 1e-9)


@given(machines, jobs)
def test_one_index_feeds_so_many_ranks(machine: Machine, job: Job) -> None:
    job = replace(job, n_cores=None)
    limit = ranks_of_one_index(machine, job)
    phases = predict(machine, replace(job, nbytes=job.chunk_nbytes * 10**6)).phases
    # With that many chunks each rank has some.
    assert (phases["allocate"] > phases["encode"]) == (job.n_ranks > limit) or math.isclose(
        phases["allocate"], phases["encode"], rel_tol=1e-6
    )


@given(machines, jobs)
def test_what_is_needed_lifts_the_index(machine: Machine, job: Job) -> None:
    # So that chunks remain more than ranks.
    job = replace(job, n_ranks=min(job.n_ranks, 64), n_cores=None, chunk_nbytes=MIB)
    job = replace(job, nbytes=10**13)
    before = predict(machine, job).phases
    others = max(before["read"], before["encode"], before["write"])
    larger = predict(machine, replace(job, chunk_nbytes=chunk_nbytes_needed(machine, job)))
    if chunk_nbytes_needed(machine, job) * 64 < job.nbytes:
        assert larger.phases["allocate"] <= max(others, before["allocate"]) * 1.01
        assert larger.phases["allocate"] <= others * 1.01


def synthetic(
    machine: Machine, noise: float = 0.0, ranks: tuple[int, ...] = (1, 2, 4, 8), seed: int = 0
) -> list[Run]:
    """Runs of a machine that is known, each phase wrong by a factor."""
    chance = random.Random(seed)
    runs = []
    for n_ranks in ranks:
        for chunk_nbytes in (MIB // 4, MIB, 4 * MIB):
            job = Job(
                nbytes=1 << 31, chunk_nbytes=chunk_nbytes, ratio=0.4, n_ranks=n_ranks, batch=16,
                source_nbytes=10**9,
            )  # fmt: skip
            found = predict(machine, job)
            phases = {
                name: seconds * math.exp(chance.gauss(0, noise))
                for name, seconds in found.phases.items()
                if seconds > 0
            }
            apart = sum(phases.values()) - phases["verify"]
            longest = max(seconds for name, seconds in phases.items() if name != "verify")
            elapsed = longest + (1 - machine.overlap) * (apart - longest) + phases["verify"]
            phases[OTHER] = machine.fixed_s
            runs.append(Run(job, phases, elapsed + machine.fixed_s))
    return runs


KNOWN = Machine(
    encode_rate=123e6, verify_rate=210e6, rank_rate=900e6, node_rate=2.5e9, index_s=17e-6,
    exchange_s=600e-6, request_s=40e-6, fixed_s=0.7, overlap=0.6,
)  # fmt: skip


def test_known_parameters_are_found_again() -> None:
    fitted = calibrate(synthetic(KNOWN))
    for name, value in vars(KNOWN).items():
        assert getattr(fitted.machine, name) == pytest.approx(value, rel=1e-6), name
    assert not fitted.estimates["node_rate"].at_least
    assert fitted.most_ranks == 8


@given(machines)
def test_known_parameters_are_found_again_on_any_machine(machine: Machine) -> None:
    fitted = calibrate(synthetic(machine))
    for name in ("encode_rate", "index_s", "fixed_s", "overlap"):
        assert getattr(fitted.machine, name) == pytest.approx(getattr(machine, name), rel=1e-5)
    for run in synthetic(machine):
        found = predict(fitted.machine, run.job).phases
        for phase in ("exchange", "allocate", "encode", "write", "read"):
            # A break that lies within a doubling of ranks by less than the floor is not seen.
            assert found[phase] == pytest.approx(predict(machine, run.job).phases[phase], rel=0.01)


def test_noise_stays_within_the_interval() -> None:
    inside = total = 0
    for seed in range(20):
        fitted = calibrate(synthetic(KNOWN, 0.05, seed=seed))
        for name in ("encode_rate", "index_s", "rank_rate", "node_rate"):
            one = fitted.estimates[name]
            total += 1
            inside += one.value / one.factor <= getattr(KNOWN, name) <= one.value * one.factor
            assert one.factor < 1.5
    assert inside >= 0.9 * total


def test_a_node_that_was_never_the_limit_is_told_as_such() -> None:
    fast = replace(KNOWN, node_rate=1e12)
    fitted = calibrate(synthetic(fast, ranks=(1, 2, 4)))
    one = fitted.estimates["node_rate"]
    assert one.at_least
    assert one.value == pytest.approx(4 * 900e6)
    job = Job(nbytes=10**12, chunk_nbytes=MIB, n_ranks=64)
    found, low, high = fitted.predict(job)
    # At best the ranks alone are the limit.
    assert low < found.elapsed_s <= high
    assert low == pytest.approx(predict(replace(fitted.machine, node_rate=1e18), job).elapsed_s)


def test_the_most_ranks_are_predicted_from_the_others() -> None:
    runs = synthetic(replace(KNOWN, node_rate=1e12), ranks=(1, 2, 4))
    # What two ranks got counts as all that the node gives: half of what four get.
    ratios = left_out(runs)
    assert [n for n, _ in ratios] == [4, 4, 4]
    assert all(1 <= ratio < 1.3 for _, ratio in ratios)
    assert left_out(synthetic(KNOWN, ranks=(2,))) == []


def test_nodes_are_counted() -> None:
    machine = Machine(rank_rate=1e9, node_rate=2e9, storage_rate=5e9)
    job = Job(nbytes=10**12, chunk_nbytes=MIB, ranks_per_node=4)
    rates = [streamed(machine, replace(job, n_ranks=n)) for n in (1, 2, 4, 5, 8, 9, 400)]
    assert rates == [1e9, 2e9, 2e9, 4e9, 4e9, 5e9, 5e9]


def test_file_systems_are_told_apart() -> None:
    fast = synthetic(KNOWN)
    slow = [replace(run, storage="slow") for run in synthetic(replace(KNOWN, node_rate=2e8))]
    both = [*fast, *slow]
    assert calibrate(both).machine.node_rate == pytest.approx(2.5e9)
    assert calibrate(both, storage="slow").machine.node_rate == pytest.approx(2e8)
    with pytest.raises(UsageError, match="there are '', slow"):
        calibrate(both, storage="tape")


def test_one_run_gives_what_it_tells() -> None:
    run = Run(Job(nbytes=10**9, chunk_nbytes=10**6), {"encode": 5.0, "allocate": 0.02})
    fitted = calibrate([run])
    assert set(fitted.estimates) == {"encode_rate", "index_s"}
    assert fitted.machine.encode_rate == pytest.approx(2e8)
    assert fitted.machine.index_s == pytest.approx(2e-5)
    assert fitted.machine.rank_rate == Machine().rank_rate
    assert fitted.estimates["encode_rate"].factor == 2.0


JOB: dict[str, Any] = {"nbytes": 1, "chunk_nbytes": 1}
# What makes no sense of a job, and of a machine.
NO_JOBS = ["nbytes 0", "chunk_nbytes 0", "n_ranks 0", "n_cores 0", "ratio 0", "ratio inf"]
NO_JOBS += ["source_nbytes -1"]
NO_MACHINES = ["encode_rate 0", "index_s -1", "overlap 1.5", "rank_rate nan"]


def test_what_cannot_be_is_refused() -> None:
    for text in NO_JOBS:
        name, value = text.split()
        with pytest.raises(UsageError):
            Job(**{**JOB, name: float(value)})
    for text in NO_MACHINES:
        name, value = text.split()
        with pytest.raises(UsageError):
            Machine(**{name: float(value)})
    job = Job(**JOB)
    phases: list[dict[str, float]] = [{"encoding": 1.0}, {"encode": -1.0}, {"encode": math.nan}]
    for runs in ([], [Run(job, {}, 0.0)], *([Run(job, one)] for one in phases)):
        with pytest.raises(UsageError):
            calibrate(runs)
