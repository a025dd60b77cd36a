"""Measure the evaluators in seconds on this machine; only ratios compare between machines."""

import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable
from contextlib import closing
from time import perf_counter
from typing import TypeVar

import numpy as np

from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane_rtl.configurations import full

from ..device.link import SimulatorLink, open_link
from ..device.simulator import Simulator
from .job import Xor

_XOR_BYTES = 1 << 24

_Result = TypeVar("_Result")


def measure_simulators(progress: Callable[[str], None]) -> dict[str, float]:
    """Seconds, cycles a second of processor time and bytes, by name. Needs a C++ compiler.

    The full system: 64 bits, two read ports, all operators, its memory and its monitor.
    """
    results: dict[str, float] = {}
    progress("first build of the model")
    with tempfile.TemporaryDirectory() as folder:
        results["first build, seconds"] = _in_new_process(_build, folder)
    progress("compiled")
    results["compiled, cycles/s"] = _speed("compiled", 1 << 23, 3)
    progress("pysim")
    results["pysim, cycles/s"] = _speed("pysim", 1 << 13, 1)
    results["compiled to pysim"] = results["compiled, cycles/s"] / results["pysim, cycles/s"]
    progress("16 MiB XOR through the driver")
    seconds, peak = _in_new_process(_xor)
    results["16 MiB XOR, seconds"] = seconds
    results["16 MiB XOR, peak memory to tensors"] = peak
    return results


def _in_new_process(function: Callable[..., _Result], *arguments: object) -> _Result:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _build(folder: str) -> float:
    os.environ["BITLANE_CACHE"] = folder
    started = perf_counter()
    open_link("sim:compiled").close()
    return perf_counter() - started


def _speed(evaluator: str, size: int, repeat: int) -> float:
    """Cycles a second while a XOR of ``size`` random bytes runs; the best of ``repeat``."""
    with closing(Simulator(full(), evaluator)) as simulator:
        xor = Xor(simulator, size)
        return max(xor.run().rate for _ in range(repeat))


def _xor() -> tuple[float, float]:
    """Seconds, and the growth of the process's peak memory in units of the three tensors."""
    link = open_link("sim:compiled")
    assert isinstance(link, SimulatorLink)
    with Device(Driver(link)) as device:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        a = np.arange(_XOR_BYTES // 8, dtype=np.uint64)
        b = a[::-1].copy()
        started = perf_counter()
        device.bit_xor(a, b)
        seconds = perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return seconds, peak * 1024 / (3 * _XOR_BYTES)
