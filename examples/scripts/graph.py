"""A graph network (Kipf and Welling, 2017) that finds the communities of a graph, of which it is told twelve members.

python examples/scripts/graph.py [--steps 200]

400 people know each other, mostly within their community. Each one's features are noise with a hint too weak to tell
by. Messages along the edges make it strong: a node becomes the mean of its neighbours, twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import confusion, curve, draw, options, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import geometric, nn

NODES, CLASSES, FEATURES, TOLD = 400, 4, 16, 3


def graph(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes [n], features [n, FEATURES], and edges [2, e] both ways with one of each node to itself."""
    classes = rng.integers(0, CLASSES, NODES)
    chance = np.where(classes[:, None] == classes[None], 0.06, 0.004)
    upper = np.triu(rng.random((NODES, NODES)) < chance, 1)
    edges = np.stack(np.nonzero(upper | upper.T | np.eye(NODES, dtype=bool)))
    features = rng.standard_normal((NODES, FEATURES)) + 1.0 * np.eye(CLASSES, FEATURES)[classes]
    return classes, features.astype("float32"), edges


class GraphNetwork(nn.Layer):
    """Two layers; ``factors`` [e, 1] weigh the edges by the degrees of both ends."""

    def __init__(self, edges: np.ndarray, width: int = 32) -> None:
        super().__init__()
        degree = np.bincount(edges[1], minlength=NODES)
        factors = 1 / np.sqrt(degree[edges[0]] * degree[edges[1]])
        self.source, self.target = (paddle.to_tensor(row) for row in edges)
        self.factors = paddle.to_tensor(factors[:, None].astype("float32"))
        self.first, self.second = nn.Linear(FEATURES, width), nn.Linear(width, CLASSES)
        self.dropout = nn.Dropout(0.5)

    def gather(self, x: paddle.Tensor) -> paddle.Tensor:
        """What arrives at each node, [n, c]."""
        return geometric.send_ue_recv(x, self.factors, self.source, self.target, "mul", "sum", out_size=NODES)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """Logits [n, CLASSES]."""
        h = F.relu(self.gather(self.first(x)))
        return self.gather(self.second(self.dropout(h)))


def main(total: int = 200, plots: str = "") -> tuple[float, float]:
    """Train; gives the accuracy on the nodes whose class was not told, without edges and with them."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    classes, features, edges = graph(rng)
    told = np.concatenate([np.nonzero(classes == c)[0][:TOLD] for c in range(CLASSES)])
    others = np.setdiff1d(np.arange(NODES), told)
    x, y, mask = paddle.to_tensor(features), paddle.to_tensor(classes[told]), paddle.to_tensor(told)
    accuracies, losses, logits = [], [], np.zeros(0)
    for used in (np.stack([np.arange(NODES)] * 2), edges):  # every node alone; then with its neighbours
        model = GraphNetwork(used)
        optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters(), weight_decay=0.05)

        @paddle.jit.to_static(full_graph=True)
        def step(model: Any = model, optimizer: Any = optimizer) -> paddle.Tensor:
            loss = F.cross_entropy(model(x).index_select(mask, 0), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        losses = [float(step()) for _ in steps(total)]
        model.eval()
        with paddle.no_grad():
            logits = model(x).numpy()
        accuracies.append(float((logits.argmax(1) == classes)[others].mean()))
    print(f"{len(told)} nodes told; accuracy on the others: {accuracies[0]:.2f} alone, {accuracies[1]:.2f} with edges")

    def paint(network: Any, loss: Any, table: Any) -> None:
        centred = logits - logits.mean(0)
        place = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for a, b in edges.T[::3]:
            network.plot(*place[[a, b]].T, color="gray", linewidth=0.2, zorder=1)
        network.scatter(*place.T, c=classes, cmap="tab10", vmax=9, s=8, zorder=2)
        network.scatter(*place[told].T, facecolors="none", edgecolors="black", s=50, zorder=3)
        network.set(title="nodes; the labels of circled ones were known", xticks=[], yticks=[])
        curve(loss, losses, "loss of the known nodes")
        confusion(table, classes[others], logits.argmax(1)[others], range(CLASSES))

    draw("graph", plots, 3, paint)
    return accuracies[0], accuracies[1]


if __name__ == "__main__":
    given = options(__doc__, steps=200)
    main(given.steps, given.plots)
