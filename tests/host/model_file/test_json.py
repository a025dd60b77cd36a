"""Comments and trailing commas are read; every error of the text has its line and column."""

import json
import random

import pytest

from bitlane.model_file import ModelFileError
from bitlane.model_file.json_text import parse_json
from support.seeds import seeds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, 3]", [1, 2, 3]),
        ("[1, 2, 3,]", [1, 2, 3]),
        ('{"a": [1,], "b": {},}', {"a": [1], "b": {}}),
        ("[1, /* 2, */ 3]", [1, 3]),
        ("// first\n[1, // second ]\n 2]// last", [1, 2]),
        ("[1, // behind the last comma\n]", [1]),
        ("[1 /* , */ , /* , */ ]", [1]),
        ("/* a * b ** / // */ [1]", [1]),
        ('["// no comment", "/* nor this */", "a,]"]', ["// no comment", "/* nor this */", "a,]"]),
        (r'["\" // \\", "\u00e9"]', ['" // \\', "\u00e9"]),
        ("[true, false, null, -1.5e+3, 1E2, -0.0]", [True, False, None, -1500.0, 100.0, -0.0]),
        ("[18446744073709551615]", [2**64 - 1]),
        ("[[], {}, [[1,],],]", [[], {}, [[1]]]),
    ],
)
def test_reads(text: str, value: object) -> None:
    assert parse_json(text, "m.json") == value


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected"),
    [
        ('{"a": 1\n  "b": 2}', 2, 3, '"b": 2}', '","'),
        ('{"a" 1}', 1, 6, "1}", '":"'),
        ("[1, 2", 1, 6, "the end of the file", '","'),
        ("", 1, 1, "the end of the file", "a value"),
        ("[,]", 1, 2, ",]", "a value"),
        ("[1,,]", 1, 4, ",]", "a value"),
        ("{,}", 1, 2, ",}", "a name in double quotes"),
        ("[1]\n\n  [2]", 3, 3, "[2]", "the end of the file"),
        ("[1,\n 2 /* three ]", 2, 4, "/* three ]", "a comment that ends with */"),
        ('["abc\n"]', 1, 2, '"abc', "a string that ends on its line"),
        ("[\n  NaN]", 2, 3, "NaN]", 'true, false, null, a number or a "string"'),
        ("[-Infinity]", 1, 3, "Infinity]", "true, false, null"),
        ("{a: 1}", 1, 2, "a: 1}", "true, false, null"),
        ("['a']", 1, 3, "a']", "true, false, null"),
        ("[0x10]", 1, 3, "x10]", '","'),
        ("[1, /* c */ // d\n, 2]", 2, 1, ", 2]", "a value"),
        ("# bitlane\n\ntext", 1, 1, "# bitlane", 'JSON, which begins with "{"'),
        ("// none\nhello", 2, 1, "hello", 'JSON, which begins with "{"'),
        (r'["a", "\ud800"]', 1, 7, r'"\ud800"]', "whole characters"),
        (r'{"\udc00\ud800": 1}', 1, 2, r'"\udc00\ud800": 1}', "whole characters"),
        (r'["\q"]', 1, 3, r'\q"]', "JSON (Invalid \\escape"),
    ],
)
def test_refuses_by_place(text: str, line: int, column: int, found: str, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        parse_json(text, "m.json")
    error = caught.value
    assert error.path == f"line {line}, column {column}"
    assert error.value == found
    assert expected in error.expected
    assert str(error).startswith(f"m.json: line {line}, column {column} is ")
    assert ("the end" in found) is (f"is {found};" in str(error))  # text is quoted, facts are not


def test_refuses_names_given_twice() -> None:
    with pytest.raises(ModelFileError, match='the name "a" is given twice'):
        parse_json('{"a": 1, "b": {"a": 2}, "a": 3}', "m.json")


def test_refuses_nesting_without_end() -> None:
    with pytest.raises(ModelFileError, match="nested too deep"):
        parse_json("[" * 200_000, "m.json")


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_comments_and_commas_change_nothing(seed: int) -> None:
    generator = random.Random(seed)

    def value(depth: int) -> object:
        kind = generator.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(generator.randrange(4))]
        if kind == 5:
            return {f'n"{i}//,': value(depth - 1) for i in range(generator.randrange(4))}
        return [generator.randrange(-9, 9), 'a "b" /* ,] }', None, 1.25][kind]

    def decorate(text: str) -> str:
        pieces: list[str] = []
        in_string = False
        for index, character in enumerate(text):
            quoted = index > 0 and text[index - 1] == "\\" and in_string
            if character == '"' and not quoted:
                in_string = not in_string
            elif not in_string and character in "]}" and text[index - 1] not in "[{":
                pieces.append(generator.choice([",", " , // ]\n", ""]))
            pieces.append(character)
            if not in_string and character in "[]{},:":
                pieces.append(generator.choice(["/* ,] */", "// }\n", " ", ""]))
        return "".join(pieces)

    for _ in range(30):
        want = value(4)
        text = decorate(json.dumps(want))
        assert parse_json(text, "m.json") == want, f"seed {seed}: {text}"
