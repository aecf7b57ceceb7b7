"""What HolisticTraceAnalysis makes of a trace: {"rows", "categories", "iterations", "rank"} as JSON on stdout.

usage: hta_judge.py TRACE          (needs the package HolisticTraceAnalysis)"""
import json
import logging
import os
import sys

logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis  # noqa: E402

path = os.path.abspath(sys.argv[1])
analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path), include_last_profiler_step=True)
rows = analysis.t.get_trace(0)
symbols = analysis.t.symbol_table.sym_table
categories = rows["cat"].map(lambda i: symbols[i]).value_counts()
names = rows["name"].map(lambda i: symbols[i])
json.dump({"rows": len(rows), "categories": {k: int(v) for k, v in categories.items()},
           "names": {k: int(v) for k, v in names.value_counts().items()},
           "iterations": [int(i) for i in sorted(set(rows["iteration"])) if i >= 0]}, sys.stdout)
