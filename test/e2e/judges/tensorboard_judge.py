"""What torch_tb_profiler makes of a folder of traces: {"runs", "workers", "steps", "operators", "status"} as JSON on stdout.

usage: tensorboard_judge.py FOLDER      (needs the packages tensorboard and torch-tb-profiler)

Starts TensorBoard on a free port of this machine and asks for what its page asks for."""
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from urllib.parse import quote


def ask(base, path):
    try:
        with urllib.request.urlopen(base + "/data/plugin/pytorch_profiler" + path, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def ready(base, server, limit=60):
    """The runs, once they are loaded."""
    until = time.monotonic() + limit
    while time.monotonic() < until and server.poll() is None:
        try:
            told = json.loads(ask(base, "/runs")[1])
            if told["runs"] and not told["loading"]:
                return told["runs"]
        except (OSError, ValueError):
            pass
        time.sleep(0.2)
    return []


folder = sys.argv[1]
server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--port", "0", "--host", "localhost"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, NO_PROXY="localhost"))
try:
    base = None
    for line in server.stderr:
        if found := re.search(r"http://localhost:\d+", line):
            base = found[0]
            break
    told = {"runs": ready(base, server) if base else [], "workers": [], "status": {}, "operators": [], "steps": None}
    for run in told["runs"]:
        workers = json.loads(ask(base, f"/workers?run={quote(run)}&view=Overview")[1])
        told["workers"] += workers
        for worker in workers:
            where = f"run={quote(run)}&worker={quote(worker)}"
            spans = json.loads(ask(base, f"/spans?{where}")[1])
            where += f"&span={spans[0]}" if spans else ""
            for view in ("overview", "operation", "operation/table", "trace"):
                status, body = ask(base, f"/{view}?{where}&group_by=Operation")
                told["status"][view] = status
                if view == "overview" and status == 200:
                    told["steps"] = json.loads(body)["steps"]["rows"]
                if view == "operation/table" and status == 200:
                    told["operators"] = [(row["name"], row["calls"]) for row in json.loads(body)["data"]]
    json.dump(told, sys.stdout)
finally:
    server.terminate()
    server.wait()
