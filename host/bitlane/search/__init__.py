"""The rows of a database that are nearest to queries: `BinaryIndex`.

The device compares; the host keeps what is near. Shapes and order are those of FAISS.
"""

from .index import BinaryIndex, SearchRequest, as_rows, search_once

__all__ = ["BinaryIndex", "SearchRequest", "as_rows", "search_once"]
