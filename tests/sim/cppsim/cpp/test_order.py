"""Reordered statements have the same results, and their values are live for less long."""

import random
import re

import pytest

from cppsim.cpp.order import in_reach
from support.seeds import seeds

STATE = [f"r{k}" for k in range(6)]


def statements(chance: random.Random, count: int) -> list[str]:
    """Return lines as the writer emits them: new names, and loads, some under a condition."""
    lines: list[str] = []
    known = list(STATE)
    for number in range(count):
        a, b, target = chance.choice(known), chance.choice(known), chance.choice(STATE)
        match chance.randrange(5):
            case 0 | 1:
                lines.append(f"const uint64_t n{number} = {a} * 3 + {b};")
                known.append(f"n{number}")
            case 2:
                lines.append(f"{target} = {a} ^ {b};")
            case 3:
                lines.append(f"{target} ^= {a};")
            case 4:
                lines += [f"if ({a} & 1) {{", f"  {target} = {b};", "}"]
    return lines


def run(lines: list[str]) -> dict[str, int]:
    """Return the state after a program of `statements`."""
    text = "\n".join(line for line in lines if line != "}")
    text = re.sub(r"if \((.*)\) \{", r"if \1:", text).replace("const uint64_t ", "")
    values = {name: 5 + 7 * place for place, name in enumerate(STATE)}
    exec(text.replace(";", ""), values)
    return {name: values[name] for name in STATE}


@pytest.mark.parametrize("window", [7, 4096])
@pytest.mark.parametrize("seed", seeds(25, 100))
def test_another_order_means_the_same(
    seed: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cppsim.cpp.order._WINDOW", window)
    lines = statements(random.Random(seed), 40)
    ordered = in_reach(lines)
    assert sorted(ordered) == sorted(lines)
    assert run(ordered) == run(lines), ordered


def test_a_register_loads_as_soon_as_nobody_reads_what_it_was() -> None:
    lines = [
        "const uint64_t a = r1 + 1ull;",
        "const uint64_t b = r2 + r1;",
        "const uint64_t c = r3 + 1ull;",
        "r1 = a;",
        "r2 = b;",
        "r3 = c;",
    ]
    assert in_reach(lines) == [lines[k] for k in (1, 4, 0, 3, 2, 5)]


def test_calls_may_change_what_they_are_given_and_keep_their_order() -> None:
    lines = [
        "uint64_t w[2];",
        "wide::add<100>(w, a, b);",
        "const uint64_t n = w[0];",
        "if (n) fail(port);",
        "if (!read(port)) fault = 1;",
        "r = port[0];",
    ]
    assert in_reach(lines) == lines


def test_a_function_that_only_computes_keeps_nobody_waiting() -> None:
    lines = ["const uint64_t n = word::divide(r1, r2);", "r3 = n;", "r2 = r4;", "r4 = 0ull;"]
    assert in_reach(lines) == lines


def test_elements_of_an_array_are_apart_until_one_is_chosen_by_a_number() -> None:
    lines = ["const uint64_t n = m[r1];", "s[1] = n;", "m[r1] = s[2];", "s[2] = 0ull;"]
    assert in_reach(lines) == lines
