"""Links to devices. Each moves bytes and knows nothing of commands; ``open_link`` finds them."""

from .link import ENTRY_POINT_GROUP, WITHOUT_CIRCUIT, BytesLike, Link, open_link

__all__ = ["ENTRY_POINT_GROUP", "WITHOUT_CIRCUIT", "BytesLike", "Link", "open_link"]
