"""A search as a tree: every hypothesis of every step with its scores, its parent, and what became of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from jumok.search.decoding import Candidates, Choose, State
from jumok.tokenizer import EOS

TOP = 10  # tokens shown for each hypothesis of a step
KEPT, FINISHED, PRUNED, STOPPED = "kept", "finished", "pruned", "stopped"


@dataclass
class Node:
    """A hypothesis: its parent's tokens and one more."""

    parent: int  # index of the node that it continues; the first node, <s>, has -1
    step: int  # decoding step in which it was found; 0 for the first token, -1 for <s>
    token: int
    text: str  # of the token
    log_prob: float
    total: float  # sum of the log-probabilities so far
    score: float  # total / length ** length_penalty
    fate: str = KEPT
    reason: str = ""  # why it was pruned or stopped
    top: list[tuple[int, str, float]] = field(default_factory=list)  # the most probable next tokens: id, text, log_prob


@dataclass
class Search:
    """The tree of one sentence."""

    beam: int
    n_best: int
    length_penalty: float
    nodes: list[Node]
    best: int = 0  # index of the node of the output, which ends it

    def path(self, node: int) -> list[int]:
        """The token ids of a node, without <s>."""
        ids: list[int] = []
        while self.nodes[node].parent >= 0:
            ids.append(self.nodes[node].token)
            node = self.nodes[node].parent
        return ids[::-1]

    def to_dict(self) -> dict[str, Any]:
        """As JSON. Not by `dataclasses.asdict`, which copies every value of thousands of nodes."""
        return {**vars(self), "nodes": [vars(node) for node in self.nodes]}

    @property
    def steps(self) -> int:
        """How many decoding steps the search took."""
        return max((node.step for node in self.nodes), default=-1) + 1


def search_from_dict(found: dict[str, Any] | None) -> Search | None:
    """A search from its `to_dict`."""
    if found is None:
        return None
    nodes = [Node(**{**node, "top": [tuple(entry) for entry in node["top"]]}) for node in found["nodes"]]
    return Search(**{**found, "nodes": nodes})


class SearchRecorder:
    """Listens to the candidates of a search for one sentence: give `recorded(choose)` to `search.decoding.decode`."""

    def __init__(self, texts: list[str], prefix: list[int], beam: int, n_best: int, length_penalty: float) -> None:
        self.texts = texts  # the text of every token of the vocabulary
        self.search = Search(beam, n_best, length_penalty, [Node(-1, -1, -1, "<s>", 0.0, 0.0, 0.0)])
        self.prefix = prefix
        self.rows: list[int] = []  # the node of each hypothesis that goes on; -1 for a dead row
        self.worst = -torch.inf

    def recorded(self, choose: Choose[Any], on_step: Callable[[], None] | None = None) -> Choose[Any]:
        """`choose`, whose candidates are recorded. `on_step` is called in every step; if it raises, the search ends."""

        def listen(log_probs: Tensor, state: State[Any]) -> Candidates:
            if on_step is not None:
                on_step()
            if not self.rows:
                self._begin(state)
            candidates = choose(log_probs, state)
            self.worst = float(state.worst[0])
            self._show_most_probable(log_probs[0])
            self._add(candidates, state.length)
            return candidates

        return listen

    def finish(self, best: list[int], score: float) -> Search:
        """The search, when it is over: what still went on was stopped, and the node of the output is known."""
        search = self.search
        for row in self.rows:
            if row > 0 and search.nodes[row].fate == KEPT:
                search.nodes[row].fate = STOPPED
                search.nodes[row].reason = f"nothing it could become would beat the finished score {score:.3f}"
        for number, node in enumerate(search.nodes):
            # An output that was cut at its limit ends without the model wanting to; it is a finished node all the same.
            if node.fate == FINISHED and search.path(number)[:-1] == best:
                search.best = number
        return search

    def _begin(self, state: State[Any]) -> None:
        """The nodes of a forced prefix."""
        ids, log_probs = state.ids[0, 0, 1:].tolist(), state.log_probs[0, 0].tolist()
        total = 0.0
        for step, (token, log_prob) in enumerate(zip(ids, log_probs, strict=True)):
            total += log_prob
            self._append(len(self.search.nodes) - 1, step, token, log_prob, total)
            self.search.nodes[-1].reason = "forced"
        self.rows = [len(self.search.nodes) - 1]

    def _append(self, parent: int, step: int, token: int, log_prob: float, total: float) -> Node:
        score = total / (step + 1) ** self.search.length_penalty
        node = Node(parent, step, token, self.texts[token], log_prob, total, score)
        self.search.nodes.append(node)
        return node

    def _show_most_probable(self, log_probs: Tensor) -> None:
        """The most probable next tokens of every hypothesis [R, V]."""
        found = log_probs.topk(min(TOP, log_probs.shape[1]))
        for row, values, ids in zip(self.rows, found.values.tolist(), found.indices.tolist(), strict=False):
            if row >= 0:
                probable = zip(ids, values, strict=True)
                self.search.nodes[row].top = [(i, self.texts[i], value) for i, value in probable if value > -torch.inf]

    def _add(self, candidates: Candidates, step: int) -> None:
        """A node for every candidate that is possible, with its fate."""
        survivors = set(candidates.survivors[0].tolist())
        nodes: dict[int, int] = {}
        columns = (candidates.rows, candidates.tokens, candidates.log_probs, candidates.totals, candidates.ended)
        for index, (row, token, log_prob, total, ended) in enumerate(
            zip(*(c[0].tolist() for c in columns), strict=True)
        ):
            if total == -torch.inf or self.rows[row] < 0:
                continue
            node = self._append(self.rows[row], step, token, log_prob, total)
            nodes[index] = len(self.search.nodes) - 1
            node.fate, node.reason = self._fate(node, ended, index in survivors)
        self.rows = [
            nodes.get(index, -1) if candidates.tokens[0, index] != EOS else -1
            for index in candidates.survivors[0].tolist()
        ]

    def _fate(self, node: Node, ended: bool, survives: bool) -> tuple[str, str]:
        if ended and node.score > self.worst:
            return FINISHED, ""
        if ended:
            return PRUNED, f"its score is not above {self.worst:.3f}, that of an output that finished before"
        if node.token == EOS:
            return PRUNED, f"it ends, but is not among the {self.search.beam} best of this step"
        return (KEPT, "") if survives else (PRUNED, f"it is not among the {self.search.beam} best of this step")
