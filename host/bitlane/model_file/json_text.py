"""Reads JSON with comments and trailing commas, as DxDispatch's parser takes it.

Comments and trailing commas are overwritten with spaces, so that every error of the standard
library's parser keeps its line and column. Nothing else is added to JSON.
"""

import json
import re

from ..errors import Fact, ModelFileError

_TOKEN = re.compile(
    r"""
      (?P<space>     [ \t\r\n]+ )
    | (?P<comment>   //[^\n]* | /\*.*?\*/ )
    | (?P<open>      /\* )
    | (?P<string>    "(?:[^"\\\n]|\\.)*" )
    | (?P<broken>    " )
    | (?P<number>    [-+.]?\d[\w.+-]* )
    | (?P<close>     [\]}] )
    | (?P<comma>     , )
    | (?P<word>      [A-Za-z_$][\w$]* )
    | (?P<other>     . )
    """,
    re.VERBOSE | re.DOTALL,
)

_LONGEST_NUMBER = 4000

_WORDS = frozenset({"true", "false", "null"})


def parse_json(text: str, file: str) -> object:
    """The value that ``text`` is. Raises ``ModelFileError`` with line and column.

    Besides malformed JSON, refuses an object that has a name twice.
    """
    try:
        return json.loads(_blank(text, file), object_pairs_hook=_Unique(file))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ModelFileError(file, place, _rest(text, error.pos), _expectation(error.msg)) from None
    except RecursionError:
        raise ModelFileError(file, "the file", Fact("nested too deep"), "fewer levels") from None


def _blank(text: str, file: str) -> str:
    """``text`` with spaces for comments and trailing commas; same length, same lines."""
    pieces: list[str] = []
    began = False
    comma: int | None = None  # piece that is a comma with nothing but space behind it so far
    for token in _TOKEN.finditer(text):
        kind, piece = token.lastgroup, token.group()
        if kind == "comment":
            piece = re.sub(r"[^\n]", " ", piece)
        elif kind == "open":
            raise _error(text, file, token.start(), "a comment that ends with */")
        elif kind == "broken":
            raise _error(text, file, token.start(), "a string that ends on its line")
        elif kind == "number" and len(piece) > _LONGEST_NUMBER:
            # Python refuses to convert integers of more than 4300 digits.
            raise _error(text, file, token.start(), f"at most {_LONGEST_NUMBER} digits")
        elif kind in ("word", "other") and (expected := _expected_instead(piece, began)):
            raise _error(text, file, token.start(), expected)
        elif kind == "close" and comma is not None:
            pieces[comma] = " "
        elif kind == "string" and "\\u" in piece and _has_half_a_pair(piece):
            raise _error(text, file, token.start(), "whole characters, no half of a surrogate pair")
        if kind not in ("space", "comment"):
            began = True
            # A comma that follows an opening bracket or a comma is not a trailing one.
            comma = len(pieces) if kind == "comma" and _ends_value(pieces) else None
        pieces.append(piece)
    return "".join(pieces)


def _expected_instead(piece: str, began: bool) -> str | None:
    """Return the expected thing in place of a word or a character; None if JSON may have it here.

    The parser of the whole text finds characters that are wrong later.
    """
    if piece in _WORDS or (len(piece) == 1 and (began or piece in "{[") and not piece.isalpha()):
        return None
    return 'true, false, null, a number or a "string"' if began else 'JSON, which begins with "{"'


def _has_half_a_pair(string: str) -> bool:
    """Return whether a string in quotes is text that no encoding can write."""
    try:
        json.loads(string).encode()
    except UnicodeEncodeError:
        return True
    except json.JSONDecodeError:
        # The parser of the whole text names the place.
        pass
    return False


def _ends_value(pieces: list[str]) -> bool:
    last = next((piece for piece in reversed(pieces) if piece.strip()), "[")
    return last[-1] not in "[{,:"


def _error(text: str, file: str, position: int, expected: str) -> ModelFileError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return ModelFileError(file, f"line {line}, column {column}", _rest(text, position), expected)


def _rest(text: str, position: int) -> str:
    """Return the text from a position to the end of its line, 20 characters at most."""
    rest = text[position : position + 20].split("\n")[0].rstrip()
    if rest:
        return rest
    return Fact("the end of the line" if text[position:].strip() else "the end of the file")


def _expectation(message: str) -> str:
    """Return an error message of the standard library as an expectation."""
    known = {
        "Expecting value": "a value",
        "Expecting property name enclosed in double quotes": 'a name in double quotes, or "}"',
        "Expecting ':' delimiter": '":"',
        "Expecting ',' delimiter": '"," or the closing bracket',
        "Extra data": "the end of the file",
        "Illegal trailing comma before end of object": "a name",
        "Illegal trailing comma before end of array": "a value",
    }
    return known.get(message, f"JSON ({message})")


class _Unique:
    """Builds objects, and refuses one that has a name twice."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __call__(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        result: dict[str, object] = {}
        for name, value in pairs:
            if name in result:
                raise ModelFileError(
                    self._file,
                    f'the name "{name}"',
                    Fact("there twice"),
                    "each name once in an object",
                )
            result[name] = value
        return result
