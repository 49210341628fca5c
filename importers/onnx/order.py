"""The order of a graph's nodes. ONNX demands that each follows those whose results it uses; ONNX Runtime does not, and
its tools write models whose nodes are in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx


def in_order(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Returns nodes so that each follows those whose results it uses, and otherwise in the order given. Nodes that wait
    for one another are left as they are."""
    makers = {output: index for index, node in enumerate(nodes) for output in node.output if output}
    ordered: list[onnx.NodeProto] = []
    visited = [False] * len(nodes)

    def needs(index: int) -> Iterator[int]:
        return (makers[name] for name in _read(nodes[index]) if name in makers)

    for first in range(len(nodes)):
        if visited[first]:
            continue
        visited[first] = True
        path = [(first, needs(first))]
        while path:
            index, others = path[-1]
            other = next((place for place in others if not visited[place]), None)
            if other is None:
                ordered.append(nodes[index])
                path.pop()
            else:
                visited[other] = True
                path.append((other, needs(other)))
    return ordered


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """Returns the names of all values that a node uses, also in graphs inside it."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _read(inner)
            yield from (output.name for output in graph.output)
