"""Operators that are given one of each kind of value: each row runs inside a range "row NAME", under torch.profiler with
record_shapes=True, which writes its trace to WINDOW. Knows nothing of tprof.

ROWS=a,b picks rows; without WINDOW no profiler is started. EXECUTION_TRACES=FOLDER has an ExecutionTraceObserver watch each
row, which writes to NAME.json there. Prints what each row computed, or the error that it raised."""
import contextlib
import enum
import os
import typing
import warnings

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
library = torch.library.Library("inputs_test", "DEF")
for schema in ("bools(Tensor x, bool[] y) -> Tensor", "strings(Tensor x, str[] y) -> Tensor", "doubles(Tensor x, float[] y) -> Tensor",
               "ints(Tensor x, int[] y) -> Tensor", "numbers(Tensor x, Scalar y) -> Tensor", "tensors(Tensor x, Tensor[] y) -> Tensor",
               "maybe(Tensor x, Tensor?[] y) -> Tensor", "nested(Tensor x, int[][] y) -> Tensor", "many(Tensor x, Tensor[] y, Tensor[] z, Tensor[] w) -> Tensor",
               "dictionary(Tensor x, Dict(str, Tensor) y) -> Tensor", "stream(Tensor x, Stream y) -> Tensor",
               "pair(Tensor x, (int, Tensor) y) -> Tensor"):
    library.define(schema)
    library.impl(schema.split("(")[0], lambda x, *rest: x.clone(), "CompositeExplicitAutograd")
ops = torch.ops.inputs_test
x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
ROWS = {}
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


def row(function):
    ROWS[function.__name__.rstrip("_")] = function
    return function


@row
def tensor():
    yield x + x.t().reshape(3, 4)
    yield x.t() + 1  # other strides
    yield x[::2, 1:3] * x[::2, 1:3]
    yield torch.tensor(2.5) * torch.ones(())
    yield x.expand(5, 3, 4).sum()
    yield torch.zeros(0, 4) + torch.zeros(4)


@row
def dimensions():
    """Five lie in the tensor itself, more apart."""
    for count in (1, 4, 5, 6, 7, 12):
        yield torch.ones(*range(1, count + 1), device="meta").transpose(0, -1).clone()
    yield torch.zeros([1] * 40).sum(0)


@row
def undefined():
    leaf = torch.ones(4, requires_grad=True)
    a, b = leaf.split(2)
    a.sum().backward()  # the gradient of b is none
    yield leaf.grad
    yield torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))


@row
def none():
    yield x.clamp(max=2.0)
    yield torch.nn.functional.layer_norm(x, (4,))


@row
def storage():
    yield torch.empty(0).set_(x.untyped_storage(), 0, (3, 2), (4, 1))


@row
def double():
    for value in (0.0, -0.0, 1.5, 2.0, -3.0, 1e-12, 1e10, 9999999999.0, 1e20, 5e-324, float("inf"), -float("inf"), float("nan"), 0.1):
        yield ops.numbers(x, value)


@row
def complex_():
    for value in (1 + 2j, 1 - 2j, -0.5j, complex(2.25, -1e-9), complex(1e12, float("inf"))):
        yield ops.numbers(x, value)
    yield torch.ones(2, dtype=torch.complex64).fill_(1 - 2j)
    yield torch.ones(2, 3, dtype=torch.complex128) * 2j


@row
def int_():
    for value in (0, -1, 7, 2 ** 31, -2 ** 31, -2 ** 31 - 1, 2 ** 63 - 1, -2 ** 63):
        yield ops.numbers(x, value)
    yield x.sum(-1)


@row
def bool_():
    yield ops.numbers(x, True)
    yield x.sum(1, keepdim=True)
    yield torch.ones(3, dtype=torch.bool).any()


@row
def tuple_():
    class Pair(torch.nn.Module):
        def forward(self, y: typing.Tuple[int, torch.Tensor], z: typing.Tuple[str, float]):
            return y[1] * y[0] * z[1]
    yield torch.jit.script(Pair())((2, x), ("a", 1.5))


@row
def string():
    yield torch.div(x, 2.0, rounding_mode="floor")
    yield torch.einsum("ij,kj->ik", x, x)
    with record_function("a range", "with an argument"):
        yield x


@row
def list_of_ints():
    yield torch.ones([2, 3])
    yield x.permute(1, 0)
    yield ops.ints(x, [])
    yield ops.ints(x, [2 ** 40, -5, 3])
    for count in (29, 30, 31, 36):
        yield ops.ints(x, list(range(count)))


@row
def list_of_doubles():
    yield ops.doubles(x, [2.0, 0.5, 1e-7])
    yield ops.doubles(x, [])
    yield torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4), scale_factor=[2.0, 0.5], mode="bilinear")


@row
def list_of_bools():
    yield ops.bools(x, [True, False])
    weight = torch.ones(1, 1, 2, requires_grad=True)
    torch.nn.functional.conv1d(torch.ones(1, 1, 4), weight).sum().backward()
    yield weight.grad


@row
def list_of_strings():
    yield ops.strings(x, ["a", "b"])
    yield ops.strings(x, [])


@row
def list_of_numbers():
    yield from torch._foreach_add([x, x], [1, 2.5])
    yield from torch._foreach_mul([x, x, x], [True, 3, 1j])


@row
def list_of_lists():
    class Lists(torch.nn.Module):
        def forward(self, y: typing.List[typing.List[int]], z: typing.List[torch.Tensor]):
            return z[0] * y[0][0]
    yield torch.jit.script(Lists())([[2, 3], [4]], [x])


@row
def list_of_tensors():
    yield torch.cat([x, x])
    yield ops.tensors(x, [])
    yield torch.stack([x.t(), x.t()], 1)
    for count in (29, 30, 31, 64):
        yield torch.cat([x] * count)
    yield ops.tensors(x, [torch.ones(1, 2, 3, 4, 5, 6, 7).transpose(1, 3), torch.tensor(1), torch.ones(2, dtype=torch.int16)])


@row
def list_of_optional_tensors():
    yield x[torch.tensor([0, 2])]
    yield x[:, torch.tensor([0, 2])]
    yield ops.maybe(x, [x, None])
    yield ops.maybe(x, [])
    yield x.clone().index_put_((torch.tensor([1]),), torch.tensor(5.0))


@row
def list_that_needs_more_records():
    many = [torch.empty_strided((2 ** 33, 3, 5, 7, 9, 2), (1, 2 ** 40, 11, 13, 2, 8), device="meta")] * 30
    yield ops.tensors(many[0], many)
    yield ops.many(many[0], many[:28], many[:20], many[:25])


@row
def dictionary():
    class Lookup(torch.nn.Module):
        def forward(self, y: typing.Dict[str, torch.Tensor]):
            return y["a"] + 1
    yield torch.jit.script(Lookup())({"a": x})


@row
def future():
    class Wait(torch.nn.Module):
        def forward(self, y: torch.jit.Future[torch.Tensor]):
            return torch.jit.wait(y)

    class Fork(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Wait()

        def forward(self, y: torch.Tensor):
            return self.inner(torch.jit.fork(torch.neg, y))
    yield torch.jit.script(Fork())(x)


@row
def device():
    yield x.to("cpu", torch.float64)
    yield torch.empty_like(x, device="meta")


@row
def dtype():
    """Older versions of PyTorch lack some."""
    for name in ("float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "complex64", "complex32", "uint16", "uint32", "uint64",
                 "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"):
        if hasattr(torch, name):
            yield torch.zeros(2, 3).to(getattr(torch, name)).clone()
    for name in ("uint1", "uint7", "int1", "int7", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2"):
        if hasattr(torch, name):
            yield torch.empty(3, dtype=getattr(torch, name), device="meta").view(3)


@row
def layout():
    yield torch.zeros_like(x, layout=torch.strided)
    yield torch.zeros(2, 3, layout=torch.sparse_coo)


@row
def memory_format():
    image = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    yield image + 1
    yield torch.empty_like(image, memory_format=torch.preserve_format).fill_(0)


@row
def generator():
    yield torch.rand(3, generator=torch.Generator().manual_seed(1))


@row
def stream():
    yield ops.stream(x, torch.Stream(device="cpu"))


@row
def unsigned():
    yield ops.numbers(x, 2 ** 64 - 1)
    yield torch.zeros(1, dtype=torch.uint64).fill_(2 ** 63 + 7).view(torch.int64)


@row
def await_():
    class Wait(torch.nn.Module):
        def forward(self, y: torch.jit._Await[torch.Tensor]):
            return torch.jit._awaitable_wait(y)

    class Start(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Wait()

        def forward(self, y: torch.Tensor):
            return self.inner(torch.jit._awaitable(torch.neg, y))
    yield torch.jit.script(Start())(x)


@row
def object_():
    packed = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(torch.ones(4, 4), 0.1, 0, torch.qint8), None)
    yield torch.ops.quantized.linear_dynamic(x, packed)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@row
def enumeration():
    class Paint(torch.nn.Module):
        def forward(self, y: torch.Tensor, colour: Colour):
            return y + 1 if colour == Colour.RED else y
    yield torch.jit.script(Paint())(x, Colour.RED)


@row
def quantized():
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    yield q.dequantize()
    yield torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 0, 0]), 0, torch.qint8).dequantize()


@row
def meta():
    yield torch.ones(5, 6, device="meta") @ torch.ones(6, 7, device="meta")


@row
def huge():
    big = torch.empty(2 ** 31 + 5, 3, device="meta")
    yield big + 1
    yield big.t() + big.t()
    yield torch.empty(2 ** 40, 2 ** 15, device="meta").neg()


@row
def sparse():
    coo = x.to_sparse()
    yield (coo + coo).to_dense()
    yield torch.sparse.mm(coo, x.t())
    yield torch.cat([coo, coo]).to_dense()


@row
def sparse_compressed():
    for make in (torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc):
        yield make(x).to_dense()
    yield torch.ones(4, 4).to_sparse_bsr((2, 2)).to_dense()
    yield x.to_sparse_csr() @ torch.ones(4)


@row
def mkldnn():
    yield torch.ones(2, 3).to_mkldnn().to_dense()


@row
def nested():
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    yield (n * 2).to_padded_tensor(0.0)
    yield torch.cat([n, n]).to_padded_tensor(0.0)


@row
def jagged():
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    yield (n * 2).values()
    yield torch.nn.functional.relu(n).values()


@row
def batched():
    yield torch.vmap(lambda a: a.t().sum(0) + a.t().mean())(torch.ones(5, 2, 3))
    yield torch.vmap(torch.vmap(lambda a: torch.cat([a, a])))(torch.ones(5, 2, 3))
    yield torch.func.grad(lambda a: (a * a).sum())(x)


@row
def functional():
    yield torch.func.functionalize(lambda a: a.t().clone().add_(1).transpose_(0, 1).view(-1).mul_(2))(x)


@row
def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        a = torch.ones(3, 4)
        b = a.t() @ a
        torch.cat([a, a])
    yield torch.tensor(list(b.shape))


@row
def symbolic():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    mode = FakeTensorMode(shape_env=ShapeEnv())
    a = mode.from_tensor(torch.ones(6, 7))
    with mode:
        b = a.t() @ a
        a.sum(0)
        torch.cat([a, a])
    yield torch.tensor([b.dim()])


class Wrapped(torch.Tensor):
    """Has its values inside."""
    policy = {}

    @staticmethod
    def __new__(cls, inner, **more):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, **cls.policy, **more)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        def unwrap(value):
            return value.inner if isinstance(value, Wrapped) else value
        if function is torch.ops.aten.sym_size.default:
            return arguments[0].inner.shape
        if function is torch.ops.aten.sym_stride.default:
            return arguments[0].inner.stride()
        if function in (torch.ops.aten.is_contiguous.default, torch.ops.aten.dim.default, torch.ops.aten.is_contiguous.memory_format):
            return NotImplemented
        result = function(*map(unwrap, arguments), **(keywords or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


class AsksForStrides(Wrapped):
    policy = {"dispatch_sizes_strides_policy": "strides"}


class AsksForSizes(Wrapped):
    policy = {"dispatch_sizes_strides_policy": "sizes"}


class Plain(torch.Tensor):
    pass


@row
def subclass():
    yield x.as_subclass(Plain) + 1
    yield (Wrapped(x) * 2).inner
    yield (Wrapped(x.t()) * 2).inner
    yield torch.nn.Parameter(x) * 3


@row
def subclass_that_answers_itself():
    for kind in (AsksForStrides, AsksForSizes):
        yield torch.ops.aten.mul.Tensor(kind(x.t()), 2).inner


@row
def error():
    try:
        torch.ones(2, 3) @ torch.ones(2, 3)
    except RuntimeError as problem:
        print("error:", problem)
    yield x


@contextlib.contextmanager
def observed(name):
    folder = os.environ.get("EXECUTION_TRACES")
    if not folder:
        yield
        return
    observer = ExecutionTraceObserver().register_callback(f"{folder}/{name}.json")
    observer.start()
    yield
    observer.stop()
    observer.unregister_callback()


def show(name, results):
    for result in results:
        shown = result.detach()
        if shown.device.type == "meta" or shown.layout != torch.strided or "8" in str(shown.dtype):
            print(name, shown.dtype, list(shown.shape))
        else:
            print(name, shown.dtype, list(shown.shape), shown.to(torch.complex128).flatten().tolist()[:50])


def run():
    chosen = os.environ.get("ROWS")
    for name, function in ROWS.items():
        if chosen and name not in chosen.split(","):
            continue
        with observed(name), record_function(f"row {name}"):
            try:
                show(name, function())
            except (AttributeError, RuntimeError, TypeError) as error:
                if VERSION >= (2, 9):
                    raise
                print(name, "is not in this PyTorch:", type(error).__name__)


window = os.environ.get("WINDOW")
if window:
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    profiler.export_chrome_trace(window)
else:
    run()
