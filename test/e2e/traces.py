"""Chrome traces read exactly: times as whole nanoseconds since the trace's base, as the text has them."""
import collections
import dataclasses
import gzip
import json
import re


def nanoseconds(text):
    """"12.005" microseconds, as both writers print them: three digits, no rounding."""
    text = str(text)
    if "." not in text:
        return int(text) * 1000
    whole, fraction = text.split(".")
    assert len(fraction) == 3, text
    return int(whole + fraction)


@dataclasses.dataclass
class Event:
    name: str
    category: str
    thread: int
    start: int
    end: int
    args: dict
    depth: int = 0
    parent: object = None

    @property
    def id(self):
        return self.args.get("Record function id")

    @property
    def sequence(self):
        return self.args.get("Sequence number")

    @property
    def forward_thread(self):
        return self.args.get("Fwd thread id")


def unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a member twice: {keys}"
    return dict(pairs)


# torch.profiler writes the annotations of its own range with the others; tprof's step slices bear torch's name.
OBSERVED = ("cpu_op", "user_annotation")
STEP = re.compile(r"ProfilerStep#(\d+)$")


class Trace:
    def __init__(self, path):
        self.path = path
        data = gzip.open(path).read() if str(path).endswith(".gz") else open(path, "rb").read()
        self.bytes = data
        self.json = json.loads(data.decode(), parse_float=str, object_pairs_hook=unique)
        self.all = self.json["traceEvents"]
        self.base = int(self.json.get("baseTimeNanoseconds", 0))
        self.events = [Event(e["name"], e["cat"], e["tid"], nanoseconds(e["ts"]),
                             nanoseconds(e["ts"]) + nanoseconds(e["dur"]), e.get("args", {}))
                       for e in self.all if e["ph"] == "X" and e.get("cat") in OBSERVED]
        self._nest()

    def _nest(self):
        by_thread = collections.defaultdict(list)
        for event in self.events:
            by_thread[event.thread].append(event)
        for events in by_thread.values():
            stack = []
            for event in sorted(events, key=lambda e: (e.start, -e.end)):
                while stack and stack[-1].end <= event.start:
                    stack.pop()
                event.depth, event.parent = len(stack), stack[-1] if stack else None
                stack.append(event)

    @property
    def told(self):
        """What tprof says of itself."""
        return self.json["tprof"]

    def operators(self):
        """Operators and ranges of the program: all but tprof's own step slices, which have no record function id."""
        return [e for e in self.events if e.id or not STEP.match(e.name)]

    def steps(self):
        return sorted((e for e in self.events if STEP.match(e.name) and not e.id), key=lambda e: e.start)

    def step_numbers(self):
        return [int(STEP.match(e.name)[1]) for e in self.steps()]

    def count(self, name):
        return sum(e.name == name for e in self.events)

    def flows(self, category="fwdbwd"):
        """(thread, time) of each start, and of its end."""
        starts, ends = {}, {}
        for e in self.all:
            if e["ph"] in "sf" and e["cat"] == category:
                into = starts if e["ph"] == "s" else ends
                assert e["id"] not in into, f"flow {e['id']} twice"
                into[e["id"]] = (e["tid"], nanoseconds(e["ts"]))
        assert starts.keys() == ends.keys()
        return [(starts[i], ends[i]) for i in sorted(starts)]
