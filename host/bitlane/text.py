"""Text that may come from anywhere, made fit for one line of a message or of a terminal."""


def printable(text: str) -> str:
    """Return ``text`` with escapes for control characters, line ends and halves of surrogates.

    What a terminal would take for a command is shown as Python writes it: ``\\x1b``.
    """
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def shortened(text: str, most: int) -> str:
    """Return ``text`` with dots in place of its middle if it is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    return f"{text[: most - 3 - half]}...{text[-half:]}"
