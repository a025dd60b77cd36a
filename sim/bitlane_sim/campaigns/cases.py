"""A case of a soak: a seed, and the configuration of a circuit as in the URL of a simulator."""

from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from bitlane.errors import BitlaneError
from bitlane_rtl.abi import BIT_OPS, Lane, Mode

MEMORY = "64KiB"
"""Memory of every random circuit."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case; ``configuration`` holds the options of a simulator's URL.

    ``instance``: the number of one of many that were run at once.
    """

    seed: int
    configuration: str
    instance: int | None = None

    @property
    def url(self) -> str:
        """The device's URL."""
        return f"sim:compiled?{self.configuration}"

    def __str__(self) -> str:
        number = "" if self.instance is None else f"/{self.instance}"
        return f"{self.seed}{number}:{self.configuration}"


def parse_case(text: str) -> Case:
    """Return the case that ``text`` describes. Raises ``BitlaneError``."""
    head, colon, configuration = text.partition(":")
    seed, slash, instance = head.partition("/")
    if not colon or not seed.isdecimal() or (slash and not instance.isdecimal()):
        raise BitlaneError(
            f"case: {text!r}; expected SEED:CONFIGURATION, like '7:width=32', or"
            " SEED/INSTANCE:CONFIGURATION"
        )
    return Case(int(seed), configuration, int(instance) if slash else None)


def random_case(seed: int) -> Case:
    """Return a case with a circuit of random size and, mostly, all features."""
    random = np.random.default_rng(seed)

    def some(names: list[str], least: int) -> str:
        count = int(random.integers(least, len(names) + 1))
        return ",".join(sorted(random.permutation(names)[:count].tolist()))

    options: dict[str, object] = {
        "width": random.choice([32, 32, 64, 64, 128]),
        "ports": random.integers(1, 3),
        "loops": random.integers(1, 7),
        "slots": random.choice([2, 4, 16, 32]),
        "memory": MEMORY,
    }
    if random.random() < 0.3:
        options["ops"] = some([op.name.lower() for op in BIT_OPS], 1)
    if random.random() < 0.3:
        options["lanes"] = some([str(lane.bits) for lane in Lane], 1)
    if random.random() < 0.3:
        others = some([mode.name.lower() for mode in Mode if mode is not Mode.DENSE], 0)
        options["modes"] = f"dense,{others}".strip(",")
    if random.random() < 0.2:
        options["width"] = random.choice([32, 64])
        sizes = [[1, 2, 3, 8], [64, 128, 512], [2, 16], [1, 4, 16]]
        options["search"] = ",".join(str(random.choice(each)) for each in sizes)
    return Case(seed, urlencode(options, safe=","))
