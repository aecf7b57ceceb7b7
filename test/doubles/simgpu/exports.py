"""exports.py LIBRARY FOLDER: what a library in front of the simulated GPU exports, from the headers that are installed.

Each function that a header declares becomes one that tells the simulated GPU of the call, fails it on request, and does
sim_NAME where such a function is written here; else it says that it is not simulated and returns LIBRARY's word for that.
LIBRARY.def beside this file lists calls that need no more than a word:
    accept      it has nothing to do              make, end   a descriptor, by its first argument
    bytes       a size, by its last argument      algorithm   there is one, and this is it
    kernel K    it launches K
What the real library exports beyond its headers returns that word too, unless it is written here. Environment: CC, CUDA_INCLUDE (folders of headers,
':' between), REAL (the library whose exports are wanted; without it the headers are all)."""
import os
import pathlib
import re
import subprocess
import sys

# headers, type of a status, names, status of what is not simulated, header of parameters, of ids, prefix of ids, domain
LIBRARIES = {
    "cudart": ("cuda_runtime_api.h cuda_profiler_api.h", "cudaError_t", r"cuda\w+", 801,
               "generated_cuda_runtime_api_meta.h", "cupti_runtime_cbid.h", "CUPTI_RUNTIME_TRACE_CBID_", "SIM_RUNTIME"),
    "cuda": ("cuda.h", "CUresult", r"cu[A-Z]\w+", 801,
             "generated_cuda_meta.h", "cupti_driver_cbid.h", "CUPTI_DRIVER_TRACE_CBID_", "SIM_DRIVER"),
    "cupti": ("cupti.h", "CUptiResult", r"cupti\w+", 27),
    "cublas": ("cublas_api.h", "cublasStatus_t", r"cublas\w+", 15),
    "cublasLt": ("cublasLt.h", "cublasStatus_t", r"cublasLt\w+", 15),
    "cudnn": ("cudnn.h", "cudnnStatus_t", r"cudnn\w+", 3000),
    "nccl": ("nccl.h", "ncclResult_t", r"nccl\w+", 5),
}


def preprocessed(header):
    command = [*os.environ.get("CC", "cc").split(), "-E", "-P", "-x", "c", "-"]
    command[-1:-1] = [f"-I{folder}" for folder in os.environ["CUDA_INCLUDE"].split(":")]
    return subprocess.run(command, input=header, capture_output=True, text=True, check=True).stdout


def split(arguments):
    """At commas that stand in no parentheses."""
    depth, found = 0, [""]
    for character in arguments:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [" ".join(argument.split()) for argument in found]


def name_of(argument):
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", argument)
    return pointer[1] if pointer else re.search(r"(\w+)\s*(?:\[\w*\]\s*)*$", argument)[1]


def prototypes(text, status, names):
    found = {}
    for name, arguments in re.findall(rf"\b{status}\s+({names})\s*\(([^;{{}}]*?)\)\s*;", text):
        arguments = split(arguments)
        found[name] = [] if arguments in (["void"], [""]) else arguments
    return found


def header_text(name):
    for folder in os.environ["CUDA_INCLUDE"].split(":"):
        path = pathlib.Path(folder, name)
        if path.exists():
            return path.read_text()
    sys.exit(f"exports.py: no {name} in CUDA_INCLUDE")


def listed(library):
    path = pathlib.Path(__file__).with_name(f"{library}.def")
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines if line and line[0] != "#"}


def done_by(word, names, arguments):
    if word[0] == "kernel":
        return f'sim_library_kernel(((struct sim_handle *){names[0]})->stream, "{word[1]}", 64, 256)'
    if word[0] == "algorithm":
        (results,) = [n for n, a in zip(names, arguments) if "AlgoPerf_t" in a]
        return f"SIM_ONE_ALGORITHM(returnedAlgoCount, {results})"
    return {"accept": "0", "make": f"sim_make((void **){names[0]})", "end": f"sim_end({names[0]})",
            "bytes": f"(*{names[-1]} = SIM_BYTES, 0)"}[word[0]]


def newest(name, known):
    """Runtime functions carry the version that brought their present form: cudaMalloc_v3020."""
    versions = [k for k in known if re.fullmatch(rf"{re.escape(name)}(_v\d+)?", k)]
    return max(versions, key=lambda k: int(k.rpartition("_v")[2]) if "_v" in k[len(name):] else 0, default=None)


def real_exports(path):
    if not path:
        return [], ""
    lines = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout.split("\n")
    fields = [line.split() for line in lines if len(line.split()) == 3]
    names = sorted({f[2].split("@")[0] for f in fields if f[1] in "TWi"})
    versions = sorted({f[2] for f in fields if f[1] == "A"} | {f[2].rpartition("@")[2] for f in fields if "@" in f[2]})
    return names, versions[-1] if versions else ""


def main(library, folder):
    include, status, names, missing, *shown = LIBRARIES[library]
    # The driver exports the old forms of its calls too.
    head = "#define __CUDA_API_VERSION_INTERNAL\n" * (library == "cuda") + "".join(f"#include <{name}>\n" for name in include.split())
    functions = prototypes(preprocessed(head), status, names)
    structs, ids, domain = set(), set(), "SIM_LIBRARY"
    if shown:
        structs = set(re.findall(r"\}\s*(\w+)_params\s*;", header_text(shown[0])))
        ids = set(re.findall(rf"{shown[2]}(\w+)\s*=", header_text(shown[1])))
        domain = shown[3]

    words = listed(library)
    declared = ["#pragma once\n" + head]
    made = [f'#include "sim_{library}.h"', '#include "simgpu.h"', *(f"#include <{name}>" for name in shown[:2])]
    if words:
        made.append('#include "library.h"')
    for name, arguments in sorted(functions.items()):
        given = [name_of(argument) for argument in arguments]
        passed = ", ".join(given)
        formal = ", ".join(arguments) or "void"
        declared.append(f"__attribute__((weak)) {status} sim_{name}({formal});")
        identity = newest(name, ids) if library == "cudart" else name if name in ids else None
        fields = [f".domain = {domain}", f'.name = "{name}"'] 
        if identity:
            fields.append(f".id = {shown[2]}{identity}")
        made.append(f"{status} {name}({formal});\n{status} {name}({formal})\n{{")
        if identity in structs and arguments:
            made.append(f"    {identity}_params parameters = {{{passed}}};")
            fields.append(".parameters = &parameters")
        done = f"sim_{name} ? (int)sim_{name}({passed}) : sim_call_missing(&call, {missing})"
        if name in words:
            done = done_by(words[name], given, arguments)
            made.extend(f"    (void){argument};" for argument in given)
        made.append(f"""    struct sim_call call = {{{", ".join(fields)}}};
    if (sim_call_begins(&call))
        call.status = {done};
    return ({status})sim_call_ends(&call);
}}""")

    rest = ['#include "simgpu.h"']
    exports, version = real_exports(os.environ.get("REAL"))
    for name in exports:
        if name not in functions and re.fullmatch(r"\w+", name):
            rest.append(f"""__attribute__((weak)) int {name}(void);
__attribute__((weak)) int {name}(void)
{{
    struct sim_call call = {{.name = "{name}"}};
    return sim_call_missing(&call, {missing});
}}""")
    if library == "cuda": # what cuGetProcAddress gives for a name is what the header makes of it
        renamed = re.findall(r"#define\s+(cu\w+)\s+(cu\w+_v\d)\s*\n", header_text(include))
        declared += ["#define SIM_DRIVER_NAMES \\", *(f'    {{"{old}", "{new}"}}, \\' for old, new in renamed), ""]
    if library == "cupti": # cuptiGetCallbackName
        for prefix, header in (("RUNTIME", "cupti_runtime_cbid.h"), ("DRIVER", "cupti_driver_cbid.h")):
            known = re.findall(rf"CUPTI_{prefix}_TRACE_CBID_(\w+)\s*=\s*(\d+)", header_text(header))
            declared += [f"#define SIM_{prefix}_CALLS \\", *(f'    [{n}] = "{name}", \\' for name, n in known if name[0] == "c"), ""]
    wanted = "".join(f"{name};\n" for name in sorted({*functions, *exports}))
    for name, lines in ((f"{library}_calls.c", made), (f"{library}_rest.c", rest), (f"sim_{library}.h", declared),
                        (f"{library}.map", [f"{version} {{ global:\n{wanted}local: *; }};"])):
        pathlib.Path(folder, name).write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
