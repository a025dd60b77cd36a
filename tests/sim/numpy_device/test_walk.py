"""The addresses of a stream: bounds, views and exits, against all addresses one by one."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from bitlane_sim.numpy_device.walk import AddressWalk

FIRST, END = 1000, 1400

walks = st.builds(
    AddressWalk,
    st.integers(FIRST, END - 1),
    st.shared(st.integers(1, 4), key="loops").flatmap(
        lambda loops: st.tuples(*[st.integers(1, 5)] * loops)
    ),
    st.shared(st.integers(1, 4), key="loops").flatmap(
        lambda loops: st.tuples(*[st.integers(-90, 90)] * loops)
    ),
    st.integers(1, 9),
)


def addresses(walk: AddressWalk) -> list[int]:
    """Return where each iteration of the innermost loop starts, in order."""
    return [
        walk.base + sum(x * step for x, step in zip(numbers, walk.steps, strict=True))
        for numbers in product(*map(range, walk.counts))
    ]


@given(walks)
def test_bounds_hold_all_addresses_and_no_other(walk: AddressWalk) -> None:
    every = addresses(walk)
    low, high = walk.bounds()
    assert (walk.base + low, walk.base + high) == (min(every), max(every) + walk.size)


@given(walks)
@example(AddressWalk(FIRST, (3, 2), (-1, 50), 4))
def test_the_first_exit_is_that_of_all_addresses_in_order(walk: AddressWalk) -> None:
    outside = [
        (number, address)
        for number, address in enumerate(addresses(walk))
        if address < FIRST or address + walk.size > END
    ]
    assert walk.leaves(FIRST, END) == (outside[0] if outside else None)


@given(walks)
def test_a_view_has_the_elements_at_all_addresses(walk: AddressWalk) -> None:
    memory = np.arange(1 << 16, dtype="<u2").view(np.uint8)
    walk = AddressWalk(walk.base + 9000, walk.counts, walk.steps, 2)
    found = walk.view(memory, 5000, np.dtype("<u2"))
    want = [int(memory[x - 5000]) | int(memory[x - 4999]) << 8 for x in addresses(walk)]
    assert found.shape == walk.counts
    assert found.reshape(-1).tolist() == want


@given(walks, st.lists(st.tuples(st.integers(1, 4), st.integers(-300, 300)), max_size=3))
def test_a_jump_begins_where_the_loops_inside_end(
    walk: AddressWalk, loops: Sequence[tuple[int, int]]
) -> None:
    """The sum of the register page: JUMP_k is added to the last address that was generated."""
    run = walk.counts[-1], walk.steps[-1]
    found = addresses(AddressWalk.of(walk.base, run, loops, walk.size))
    address, want = walk.base, []
    for number in range(len(found)):
        if number:
            rest, jump = divmod(number, run[0])[0], run[1]
            if number % run[0] == 0:
                for count, each in loops:
                    jump = each
                    if rest % count:
                        break
                    rest //= count
            address += jump
        want.append(address)
    assert found == want
