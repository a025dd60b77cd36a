"""A cable that loses, doubles, reorders and damages frames, by chance with a seed."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CableFaults:
    """The shares of frames that a cable treats wrongly, from 0 to 1, and the seed of chance.

    A frame that is reordered comes behind the next one. A damaged one has one wrong bit.
    """

    lose: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    damage: float = 0.0
    seed: int = 1


class Cable:
    """One direction of a cable with ``faults``. ``name`` makes its chance another one.

    Attributes
    ----------
    lost, doubled, reordered, damaged
        Numbers of frames.
    """

    def __init__(self, faults: CableFaults, name: str) -> None:
        self._faults = faults
        self._random = random.Random(f"{faults.seed} {name}")
        self._held: list[bytes] = []
        self.lost = self.doubled = self.reordered = self.damaged = 0

    @property
    def holds(self) -> bool:
        """Whether a frame waits for the next one."""
        return bool(self._held)

    def through(self, frame: bytes) -> list[bytes]:
        """Return the frames that arrive when ``frame`` is sent."""
        chance, faults = self._random, self._faults
        # The same numbers for each frame, so that one kind of fault does not move the others.
        lose, double, reorder, damage = (chance.random() for _ in range(4))
        place = chance.randrange(8 * len(frame))
        if lose < faults.lose:
            self.lost += 1
            return []
        if damage < faults.damage:
            self.damaged += 1
            wrong = bytearray(frame)
            wrong[place // 8] ^= 1 << place % 8
            frame = bytes(wrong)
        frames = [frame]
        if double < faults.double:
            self.doubled += 1
            frames *= 2
        if reorder < faults.reorder and not self._held:
            self.reordered += 1
            self._held = frames
            return []
        return frames + self.release()

    def release(self) -> list[bytes]:
        """Return the frames that no other one has overtaken."""
        held, self._held = self._held, []
        return held
