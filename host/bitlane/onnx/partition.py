"""Cuts a graph into connected groups of nodes for the device, and the rest between them.

Arithmetic on numbers of nodes alone: no operator, no type.
"""

from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from typing import Final, TypeAlias

Members: TypeAlias = tuple[int, ...]
"""The numbers of a group's nodes, in order."""

Edges: TypeAlias = Sequence[Collection[int]]
"""Numbers of the nodes that each node reads; all are lower than its own number."""

Edge: TypeAlias = tuple[int, int]
"""Two nodes; the second reads the first."""

EFFORT: Final = 20_000
"""Most steps of a search, times the nodes of the graph: a second. Ten nodes take 20 steps."""


def group_nodes(reads: Edges, ours: Sequence[bool], effort: int = EFFORT) -> list[Members]:
    """Return the fewest connected groups of the nodes that are ``ours``, without a cycle.

    Two groups with an edge between them are one, unless nodes that are not ours lie between them
    on another path. Of two orders of merging the one with fewer groups bounds a search for fewer,
    which gives up after a limited ``effort``: large graphs may have some more than the fewest.
    """
    edges = [(a, b) for b, sources in enumerate(reads) for a in sources if ours[a] and ours[b]]
    found = [_merge(reads, ours, order) for order in (sorted(edges), sorted(edges, reverse=True))]
    return _Search(reads, ours).fewest(edges, min(found, key=len), effort)


def _merge(reads: Edges, ours: Sequence[bool], edges: Iterable[Edge]) -> list[Members]:
    """Merge the groups at the ends of ``edges``, in this order, where no cycle results."""
    clusters = _Clusters(reads)
    waiting = list(edges)
    while True:
        left = [(a, b) for a, b in waiting if not clusters.try_merge(a, b)]
        if len(left) == len(waiting):
            break
        # A merge may close the only other path between two groups.
        waiting = left
    return clusters.groups(ours)


class _Search:
    """Looks for the fewest groups: branches on an edge, whose ends are in one group or not.

    All groups without a cycle are found, since one that is connected can be merged edge by edge
    without a cycle: from a node on to the first of its readers there.
    """

    def __init__(self, reads: Edges, ours: Sequence[bool]) -> None:
        self._reads = reads
        self._ours = ours
        self._beyond = [0] * len(reads)
        """Masks of the nodes before each node, with one that is not ours between."""
        before = [0] * len(reads)
        for node, sources in enumerate(reads):
            for source in sources:
                before[node] |= before[source] | 1 << source
                self._beyond[node] |= (self._beyond if ours[source] else before)[source]

    def fewest(self, edges: Sequence[Edge], best: list[Members], effort: int) -> list[Members]:
        """Return groups along ``edges`` that are fewer than ``best``, or else these."""
        waiting = [(_Clusters(self._reads), edges)]
        steps = effort // max(1, len(self._reads))
        while waiting and steps > 0:
            steps -= 1
            clusters, edges = waiting.pop()
            edges = self._joinable(clusters, edges)
            groups = clusters.groups(self._ours)
            if self._least(groups, edges) >= len(best):
                continue
            apart = deepcopy(clusters)
            merged = next((edge for edge in edges if clusters.try_merge(*edge)), None)
            if merged is None:
                best = min(best, groups, key=len)
            else:
                left = [edge for edge in edges if edge != merged]
                waiting += [(apart, left), (clusters, left)]
        return best

    def _joinable(self, clusters: "_Clusters", edges: Iterable[Edge]) -> list[Edge]:
        """Return an edge for each two clusters that may be one, perhaps after other merges."""
        found = {}
        for a, b in edges:
            first, second = clusters.members(a), clusters.members(b)
            mask = sum(1 << node for node in first + second)
            if first != second and not any(self._beyond[x] & mask for x in first + second):
                found[first, second] = a, b
        return list(found.values())

    def _least(self, groups: Iterable[Members], edges: Iterable[Edge]) -> int:
        """Return a number that no merging of ``groups`` along ``edges`` can fall below.

        No two nodes of a chain with others between them are in one group, and no edge joins parts
        that are not connected.
        """
        part = {node: group for group in groups for node in group}
        for a, b in edges:
            if part[a] != part[b]:
                both = part[a] + part[b]
                part.update(dict.fromkeys(both, both))
        return sum(self._chain(sorted(nodes)) for nodes in set(part.values()))

    def _chain(self, nodes: Iterable[int]) -> int:
        """Return the most of ``nodes`` of which each two have others between them."""
        layers: list[int] = []
        for node in nodes:
            # A node that is beyond one of a layer is beyond one of each layer before it.
            depth = sum(bool(self._beyond[node] & layer) for layer in layers)
            layers += [0] * (depth == len(layers))
            layers[depth] |= 1 << node
        return len(layers)


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

    def groups(self, ours: Sequence[bool]) -> list[Members]:
        """Return the clusters of the nodes that are ``ours``, in order."""
        owners = {owner for owner, mine in zip(self._owner, ours, strict=True) if mine}
        return sorted(tuple(sorted(self._members[owner])) for owner in owners)

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
