"""The allocator: pieces never overlap, and what is freed comes back whole."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bitlane.driver.allocator import Allocation, Allocator, OutOfDeviceMemory
from bitlane.errors import DeviceError

BASE, SIZE = 0x1008, 4096


class AnyUse(RuleBasedStateMachine):
    """Random allocations and frees beside a plain map of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.allocator = Allocator(BASE, SIZE)
        self.held: list[Allocation] = []
        self.taken: set[int] = set()

    @rule(size=st.integers(0, 1500), alignment=st.sampled_from([1, 4, 64, 256]))
    def allocate(self, size: int, alignment: int) -> None:
        try:
            buffer = self.allocator.allocate(size, alignment)
        except OutOfDeviceMemory:
            assert not any(
                self.taken.isdisjoint(range(start, start + max(size, 1)))
                for start in range(-(-BASE // alignment) * alignment, BASE + SIZE, alignment)
                if start + max(size, 1) <= BASE + SIZE
            )
            return
        covered = range(buffer.address, buffer.address + max(size, 1))
        assert buffer.size == size
        assert buffer.address % alignment == 0
        assert covered[0] >= BASE
        assert covered[-1] < BASE + SIZE
        assert self.taken.isdisjoint(covered)
        self.taken.update(covered)
        self.held.append(buffer)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        buffer = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.allocator.free(buffer)
        self.taken.difference_update(range(buffer.address, buffer.address + max(buffer.size, 1)))
        with pytest.raises(DeviceError, match="not allocated"):
            self.allocator.free(buffer)

    @invariant()
    def counts_are_right(self) -> None:
        assert self.allocator.free_bytes == SIZE - len(self.taken)
        assert self.allocator.pieces == len(self.held)

    def teardown(self) -> None:
        for buffer in self.held:
            self.allocator.free(buffer)
        assert self.allocator.allocate(SIZE, 8) == Allocation(BASE, SIZE)


TestAnyUse = AnyUse.TestCase
TestAnyUse.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_the_smallest_hole_that_fits_is_taken() -> None:
    allocator = Allocator(0, 1024)
    pieces = [allocator.allocate(size) for size in (256, 64, 128, 64, 512)]
    allocator.free(pieces[0])
    allocator.free(pieces[2])
    assert allocator.allocate(100) == Allocation(pieces[2].address, 100)


def test_an_error_says_what_is_free() -> None:
    allocator = Allocator(0, 256)
    allocator.allocate(100, 1)
    with pytest.raises(OutOfDeviceMemory, match=r"200 bytes .* hole has 128 of 156 free"):
        allocator.allocate(200)
    assert allocator.largest() == 128
    assert allocator.largest(1) == 156
    with pytest.raises(MemoryError):
        allocator.allocate(200)


def test_a_full_memory_has_no_hole() -> None:
    allocator = Allocator(0, 64)
    allocator.allocate(64)
    assert (allocator.largest(), allocator.free_bytes) == (0, 0)


@pytest.mark.parametrize(("size", "alignment"), [(-1, 64), (1, 0), (1, 3)])
def test_nonsense_is_refused(size: int, alignment: int) -> None:
    with pytest.raises(ValueError):
        Allocator(0, 64).allocate(size, alignment)
    with pytest.raises(ValueError):
        Allocator(0, 0)


@pytest.mark.parametrize("buffer", [Allocation(64, 64), Allocation(0, 63), Allocation(1, 64)])
def test_only_what_was_allocated_can_be_freed(buffer: Allocation) -> None:
    allocator = Allocator(0, 1024)
    allocator.allocate(64)
    with pytest.raises(DeviceError, match="expected a buffer of this device"):
        allocator.free(buffer)
