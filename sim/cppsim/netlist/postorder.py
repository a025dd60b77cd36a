"""An order in which everything comes after all that it needs."""

from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["postorder"]


def _ignore(_: int) -> None:
    pass


def postorder(
    roots: Iterable[int],
    needs: Callable[[int], Sequence[int]],
    loop: Callable[[int], None] = _ignore,
) -> Iterator[int]:
    """Yield ``roots`` and all that they need, each number once and after its ``needs``.

    A need is visited just before its first user, as in a recursive walk. ``loop`` is called with a
    number that is needed by something that it needs itself; if it returns, the need is ignored.
    Numbers are not negative.
    """
    done: dict[int, bool] = {}
    for root in roots:
        # A number below 0 ends the visit of its complement.
        left = [root]
        while left:
            number = left.pop()
            if number < 0:
                done[~number] = True
                yield ~number
            elif number not in done:
                done[number] = False
                left.append(~number)
                for other in reversed(needs(number)):
                    ended = done.get(other)
                    if ended is None:
                        left.append(other)
                    elif not ended:
                        loop(other)
