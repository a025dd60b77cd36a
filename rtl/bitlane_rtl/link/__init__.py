"""Requests and answers of a host, as `abi.frames` and `abi.datagrams` specify, for every line."""
