"""Random programs of views, operators in place or not, and assignments give what NumPy gives.

As if everything were computed at once and every operand copied first: on a fast model of a device
and on simulated circuits of three kinds.
"""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane.device import Device
from support.host.arrays import model
from support.host.programs import Program
from support.seeds import examples
from support.system.devices import DEVICES, opened


@pytest.fixture(scope="module", params=DEVICES)
def circuit(request: pytest.FixtureRequest) -> Iterator[Device]:
    with opened(request.param) as device:
        yield device
        gc.collect()


@examples(0.4)
@given(data=st.data())
def test_programs_on_a_model(data: st.DataObject) -> None:
    device = model()
    Program(data, device).run(data.draw(st.integers(1, 14)))
    gc.collect()
    assert device.driver.allocator.pieces == 0, "memory was not given back"


@given(data=st.data())
def test_programs_on_circuits(circuit: Device, data: st.DataObject) -> None:
    Program(data, circuit).run(data.draw(st.integers(1, 14)))
