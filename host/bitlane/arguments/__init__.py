"""Arguments of calls: their types, shapes and layouts, and the type in which two operands meet."""
