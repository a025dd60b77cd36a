"""Cuts a graph into connected groups of nodes for the device, and the rest between them.

Arithmetic on numbers of nodes alone: no operator, no type.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

Members: TypeAlias = tuple[int, ...]
"""The numbers of a group's nodes, in order."""

Edges: TypeAlias = Sequence[Collection[int]]
"""For each node the numbers of the nodes that it reads, all of them lower."""


def group_nodes(reads: Edges, ours: Sequence[bool]) -> list[Members]:
    """Return connected groups of the nodes that are ``ours``, without a cycle between groups.

    Two groups with an edge between them are one, unless nodes that are not ours lie between them
    on another path. The fewer groups of two orders of merging are taken.
    """
    edges = [(a, b) for b, sources in enumerate(reads) for a in sources if ours[a] and ours[b]]
    found = [_merge(reads, ours, order) for order in (sorted(edges), sorted(edges, reverse=True))]
    return min(found, key=len)


def _merge(reads: Edges, ours: Sequence[bool], edges: Iterable[tuple[int, int]]) -> list[Members]:
    """Merge the groups at the ends of ``edges``, in this order, where no cycle results."""
    clusters = _Clusters(reads)
    waiting = list(edges)
    while True:
        left = [(a, b) for a, b in waiting if not clusters.try_merge(a, b)]
        if len(left) == len(waiting):
            break
        # A merge may close the only other path between two groups.
        waiting = left
    return sorted({clusters.members(node) for node, mine in enumerate(ours) if mine})


class _Clusters:
    """Nodes in clusters; at first each is one by itself."""

    def __init__(self, reads: Edges) -> None:
        self._owner = list(range(len(reads)))
        self._members = {node: {node} for node in self._owner}
        self._readers: dict[int, set[int]] = {node: set() for node in self._owner}
        for node, sources in enumerate(reads):
            for source in sources:
                self._readers[source].add(node)

    def members(self, node: int) -> Members:
        return tuple(sorted(self._members[self._owner[node]]))

    def try_merge(self, a: int, b: int) -> bool:
        """Merge the clusters of ``a`` and of ``b``, which reads it; False if a cycle results."""
        first, second = self._owner[a], self._owner[b]
        if first == second:
            return True
        if self._is_joined_elsewhere(first, second):
            return False
        if len(self._members[first]) < len(self._members[second]):
            first, second = second, first
        for node in self._members[second]:
            self._owner[node] = first
        self._members[first] |= self._members.pop(second)
        self._readers[first] |= self._readers.pop(second)
        return True

    def _next(self, cluster: int) -> set[int]:
        return {self._owner[node] for node in self._readers[cluster]} - {cluster}

    def _is_joined_elsewhere(self, first: int, second: int) -> bool:
        """Return whether a path leads from one cluster to another through a third."""
        waiting = self._next(first) - {second}
        seen = set(waiting)
        while waiting:
            cluster = waiting.pop()
            following = self._next(cluster)
            if second in following:
                return True
            fresh = following - seen
            seen |= fresh
            waiting |= fresh
        return False


def schedule(reads: Edges, groups: Sequence[Members]) -> list[tuple[bool, Members]]:
    """Return steps in an order in which they can be computed: those of ``groups``, and the rest.

    Each step is whether it is one of ``groups``, and its nodes. All other nodes that can be
    computed at a time are one step, so that these steps are as few as possible.
    """
    grouped = {node for group in groups for node in group}
    rest = [node for node in range(len(reads)) if node not in grouped]
    needs = {group: _outside(reads, group) for group in groups}
    waiting, done = list(groups), set[int]()
    steps: list[tuple[bool, Members]] = []
    while waiting or rest:
        before = len(done)
        ready = waiting
        while ready:
            ready = [group for group in waiting if needs[group] <= done]
            for group in ready:
                steps.append((True, group))
                done.update(group)
            waiting = [group for group in waiting if group not in ready]
        part: list[int] = []
        for node in rest:
            if all(source in done for source in reads[node]):
                part.append(node)
                done.add(node)
        if part:
            steps.append((False, tuple(part)))
            rest = [node for node in rest if node not in done]
        assert len(done) > before, "groups without a cycle can be ordered"
    return steps


def _outside(reads: Edges, group: Members) -> set[int]:
    """Return the nodes outside that ``group`` reads."""
    return {source for node in group for source in reads[node]} - set(group)
