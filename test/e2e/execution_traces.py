"""Execution traces, torch.profiler.ExecutionTraceObserver's and ours, node by node.

Nodes are matched by their record function id. Ids of tensors and storages are one another's by a renaming: one-to-one where no
address is used twice (doubles/keep.c); else torch gives an address that is used again the old id, and ours have one of torch's
each. Up to 2.9 torch knows a storage by the address of another object than its data."""
import gzip
import json
import re

import pytest

from conftest import VERSION
from traces import unique

ARRAYS = ["values", "shapes", "types", "strides"]
SPECIAL = "[pytorch|profiler|execution_trace|"
BY_DATA = VERSION >= (2, 10)
needs_schemas = pytest.mark.skipif(() < VERSION < (2, 6), reason="this PyTorch does not tell its operators' schemas")
older_form = pytest.mark.skipif(() < VERSION < (2, 9), reason="this PyTorch's observer writes an older form")


class ExecutionTrace:
    def __init__(self, path):
        self.text = gzip.open(path, "rt").read() if str(path).endswith(".gz") else open(path).read()
        self.json = json.loads(self.text, parse_float=str, object_pairs_hook=unique)
        self.nodes = self.json["nodes"]
        self.by_id = {node["id"]: node for node in self.nodes}
        for node in self.nodes:
            node["attributes"] = {attr["name"]: attr["value"] for attr in node["attrs"]}
        self.operators = [node for node in self.nodes if not node["name"].startswith(SPECIAL)]
        self.by_record = {self.record(node): node for node in self.operators}
        assert len(self.by_record) == len(self.operators) and 0 not in self.by_record

    @staticmethod
    def record(node):
        return node["attributes"]["rf_id"]

    def special(self, what):
        return [node for node in self.nodes if node["name"] == f"{SPECIAL}{what}]"]


class Renaming:
    """torch's ids and ours: one to one, unless an address may have been used again."""

    def __init__(self, one_to_one=False):
        self.one_to_one, self.to, self.back = one_to_one, {}, {}

    def same(self, torch, ours, what):
        return self.back.setdefault(ours, (what, torch)) == (what, torch) and \
            (not self.one_to_one or self.to.setdefault((what, torch), ours) == ours)

    def same_values(self, torch, ours, kind):
        """Values of one type, as its text tells it."""
        if kind.startswith("Tensor("):
            names = [(torch[0], ours[0], "tensor")] + ([(torch[1], ours[1], "storage")] if torch[1] and BY_DATA else [])
            return torch[2:] == ours[2:] and bool(torch[1]) == bool(ours[1]) and all(self.same(*pair) for pair in names)
        if kind.startswith(("GenericList[", "Tuple[")):
            kinds = elements(kind)
            return len(torch) == len(ours) == len(kinds) and all(map(self.same_values, torch, ours, kinds))
        return torch == ours


def elements(kind):
    """The types in "GenericList[Int,GenericList[Int,Int]]"."""
    inside, depth, found = kind[kind.index("[") + 1:-1], 0, [""]
    for c in inside:
        depth += (c in "[(<") - (c in "])>")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found if inside else []


def compare_values(nodes, one_to_one=False):
    """How many tensors and storages they are of."""
    renaming = Renaming(one_to_one)
    for a, b in nodes:
        for side in ("inputs", "outputs"):
            for array in ARRAYS[1:]:
                assert a[side][array] == b[side][array], (a["name"], side)
            kinds = a[side]["types"]
            assert len(a[side]["values"]) == len(b[side]["values"]) == len(kinds)
            for value in zip(a[side]["values"], b[side]["values"], kinds):
                assert renaming.same_values(*value), (a["name"], side, value)
    return len(renaming.back)


def named(trace, pattern):
    return [node for node in trace.operators if re.fullmatch(pattern, node["name"], re.S)]
