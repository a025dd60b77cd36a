"""From C++ to a library in memory: a compiler, and a cache of what it has made."""
