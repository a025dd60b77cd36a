"""The `bitlane` program: finds its subcommands, reads words and prints answers."""

from .cli import (
    CHECK_FAILED,
    DONE,
    INTERRUPTED,
    UNUSABLE,
    Group,
    Subparsers,
    main,
    whole_number,
    whole_parser,
)

__all__ = [
    "CHECK_FAILED",
    "DONE",
    "INTERRUPTED",
    "UNUSABLE",
    "Group",
    "Subparsers",
    "main",
    "whole_number",
    "whole_parser",
]
