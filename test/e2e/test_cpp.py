"""A program in C++ that links libtorch and knows no Python: its first operator is the door."""
import pathlib
import subprocess

import pytest

from conftest import CLEAN, PROGRAMS, have_compiler, preload, start, finish, torch_cxx_flags

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not have_compiler(), reason="no C++ compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    package = pathlib.Path(torch.__file__).parent
    if not (package / "include/ATen/ATen.h").exists():
        pytest.skip("this PyTorch comes without its headers")
    program = tmp_path_factory.mktemp("cpp") / "train"
    subprocess.run([have_compiler(), *torch_cxx_flags(), "-O0", "-pthread",
                    PROGRAMS / "cpp/train.cpp", "-o", program, f"-L{package}/lib", "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10",
                    f"-Wl,-rpath,{package}/lib", "-Wl,--allow-shlib-undefined"], check=True)
    return program


@pytest.mark.parametrize("way", ["interpose", "callback"])
def test_a_program_without_python(program, tmp_path, way):
    bare = finish(start([program], CLEAN), tmp_path)
    environment = dict(CLEAN, TPROF_DIR=str(tmp_path / "out"), TPROF_HOOK=way, TPROF_STEP="range:training step")
    preload(environment)
    result = finish(start([program], environment), tmp_path / "out")
    assert (result.status, result.stdout) == (bare.status, bare.stdout) and bare.status == 0
    trace = result.trace
    assert trace.count("training step") == 3 and trace.count("aten::relu") == 3 and trace.count("ReluBackward0") == 3


def test_everything_is_seen(program, tmp_path):
    environment = dict(CLEAN, TPROF_DIR=str(tmp_path / "out"), TPROF_SCHEDULE="always")
    preload(environment)
    result = finish(start([program], environment), tmp_path / "out")
    assert result.trace.count("training step") == 15 and result.trace.count("aten::relu") == 15
    assert result.trace.count("aten::full") == 2
    assert len({event.thread for event in result.trace.operators() if event.name == "training step"}) == 2
