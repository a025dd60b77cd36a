"""Lets `--benchmark-json` write a file like those of `bitlane bench --json`, for the page."""

from collections.abc import Iterable
from typing import Any

from bitlane_sim.figures import record


def pytest_benchmark_update_json(benchmarks: Iterable[Any], output_json: dict[str, Any]) -> None:
    figures = {
        f"{benchmark.name}, {name}": value
        for benchmark in benchmarks
        for name, value in benchmark.extra_info.items()
    }
    output_json.clear()
    output_json.update(record("host", figures, ("numpy", "pytest-benchmark")))
