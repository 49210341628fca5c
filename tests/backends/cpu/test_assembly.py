"""Programs as artifacts: the content of an artifact follows from the program alone, and includes everything that
running it takes."""

from __future__ import annotations

import llvmlite
import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT, elementwise, program_of
from trivium.backends import native
from trivium.backends.artifact import to_bytes
from trivium.backends.cpu.assembly import assemble, assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CpuTarget, host, machine_of
from trivium.backends.llvm.elf import is_shared_object
from trivium.compiler.artifact import COSTS, Artifact, Embedded, ModuleConstant, NativeFunction, PythonFunction
from trivium.compiler.constants import constant_arrays
from trivium.compiler.driver import CompileOptions
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.program import Launch, Program
from trivium.compiler.stages import Stages
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.text import parse

WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
TEXT = f"""func.func @main(
    %x: tensor<100x64xf32> {{jax.buffer_donor = true, trivium.name = "x"}}, %n: tensor<3xcomplex<f32>>,
    %y: tensor<2xi1> {{tf.aliasing_output = 2 : i32}}
  ) -> (tensor<100x64xf32>, tensor<3xcomplex<f32>>, tensor<2xi1>) {{
  %w = stablehlo.constant dense<"0x{WEIGHTS.tobytes().hex()}"> : tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<100x64xf32>, tensor<64x64xf32>) -> tensor<100x64xf32>
  %1 = stablehlo.cosine %0 : tensor<100x64xf32>
  return %1, %n, %y : tensor<100x64xf32>, tensor<3xcomplex<f32>>, tensor<2xi1>
}}"""


def stages(module: Module, **options: object) -> Stages:
    chosen = CompileOptions(**options)  # type: ignore[arg-type]
    return Stages(module, CLIENT.target(chosen), chosen)


def assembled(made: Stages) -> Artifact:
    assert isinstance(made.target, CpuTarget)
    return assemble(made, made.target)


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return assembled(stages(parse(TEXT), threads=1))


def test_what_it_was_made_for_and_by(artifact: Artifact) -> None:
    assert artifact.name == "main"
    assert artifact.machine == machine_of(host())
    assert (artifact.runtime, artifact.threads) == (native.VERSION, 1)
    assert artifact.producer == f"llvmlite {llvmlite.__version__}"
    assert artifact.arena_alignment == host().alignment
    assert is_shared_object(artifact.code)


def test_slots(artifact: Artifact) -> None:
    """Complex numbers, which are pairs in kernels, remain complex numbers."""
    found = [(slot.dtype, slot.shape) for slot in artifact.inputs]
    assert found == [(np.float32, (100, 64)), (np.complex64, (3,)), (np.bool_, (2,))]
    assert [(slot.dtype, slot.shape) for slot in artifact.outputs] == found


def test_texts(artifact: Artifact) -> None:
    texts = artifact.texts
    signature = parse(texts["signature"]).functions["main"]
    assert signature.is_declaration
    assert str(signature.function_type) == str(parse(TEXT).main.function_type)
    assert "trivium.name" in texts["signature"]
    assert texts["donated"] == "101"
    assert float(texts[COSTS[0]]) >= 2 * 100 * 64 * 64
    assert float(texts[COSTS[1]]) == 100 * 64
    assert "tile" in texts["schedules"]


def test_constants_of_the_module_are_not_copied(artifact: Artifact) -> None:
    """Constants are referred to, and packed when the artifact is loaded."""
    (constant,) = artifact.constants
    assert constant.source == ModuleConstant(0, 0, WEIGHTS.nbytes)
    assert constant.packing is not None
    assert constant.nbytes >= WEIGHTS.nbytes
    assert len(to_bytes(artifact)) < len(artifact.code) + WEIGHTS.nbytes
    x = np.random.default_rng(1).standard_normal((100, 64)).astype(np.float32)
    rest = np.zeros(3, np.complex64), np.zeros(2, np.bool_)
    executable = CpuExecutable(artifact, constant_arrays(parse(TEXT)))
    np.testing.assert_allclose(executable.execute(x, *rest)[0], np.cos(x @ WEIGHTS), atol=2e-4)


def test_what_the_compiler_computed_is_embedded() -> None:
    module = parse("""func.func @main() -> tensor<100xf32> {
      %0 = stablehlo.iota dim = 0 : tensor<100xf32>
      %c = stablehlo.constant dense<2.0> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<100xf32>
      %2 = stablehlo.multiply %0, %1 : tensor<100xf32>
      return %2 : tensor<100xf32>
    }""")
    artifact = assembled(stages(module))
    assert all(isinstance(constant.source, Embedded) for constant in artifact.constants)
    np.testing.assert_array_equal(CpuExecutable(artifact).execute()[0], 2 * np.arange(100))


def test_the_same_module_becomes_the_same_bytes(artifact: Artifact) -> None:
    """Artifacts contain nothing of this process, such as addresses."""
    assert to_bytes(assembled(stages(parse(TEXT), threads=1))) == to_bytes(artifact)


@pytest.mark.skipif(not host().fma, reason="this processor has no fused multiply-add")
def test_options_change_the_code() -> None:
    """A product is rounded before it is added to a value, unless fast math allows otherwise."""
    module = """func.func @main(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {
      %0 = stablehlo.multiply %x, %x : tensor<16xf32>
      %1 = stablehlo.subtract %0, %y : tensor<16xf32>
      return %1 : tensor<16xf32>
    }"""
    x, y = np.full(16, 1 + 2.0**-12, np.float32), np.full(16, 1 + 2.0**-11, np.float32)
    for fast, wanted in ((False, 0), (True, 2.0**-24)):
        (result,) = CpuExecutable(assembled(stages(parse(module), fast_math=fast))).execute(x, y)
        assert result.tolist() == [wanted] * 16


def test_functions_of_the_host_are_named() -> None:
    module = parse("""func.func @main(%x: tensor<4x4xf64>) -> tensor<4x4xf64> {
      %0 = stablehlo.cholesky %x, lower = true : tensor<4x4xf64>
      return %0 : tensor<4x4xf64>
    }""")
    (function,) = assembled(stages(module)).host_functions
    assert isinstance(function, NativeFunction)
    assert function.routine == "dpotrf"
    assert native.address(function.function)
    assert not isinstance(function, PythonFunction)


def test_programs_of_kernels_have_no_signature() -> None:
    artifact = assemble_program(program_of(elementwise("cosine", ["f32"], "f32", 12)), host())
    assert "signature" not in artifact.texts
    assert "cosine" in artifact.texts["schedules"]
    x = np.arange(12, dtype=np.float32)
    np.testing.assert_allclose(CpuExecutable(artifact).execute(x)[0], np.cos(x), rtol=1e-6)


def test_wrong_programs_are_not_assembled() -> None:
    b = KernelBuilder("copy")
    x, y = b.input("x", "f32", (4,)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.store(y, b.load(x, i), i)
    good = program_of(b.build())
    (launch,) = good.steps
    assert isinstance(launch, Launch)
    (x_value, _) = launch.arguments
    bad = Program("copy", good.inputs, good.outputs, [Launch(launch.kernel, (x_value, x_value))])
    with pytest.raises(CompileError, match="a step writes x: 4xf32 at input 0"):
        assemble_program(bad, host())


def test_what_is_compiled_is_what_is_assembled(artifact: Artifact) -> None:
    """The client's executable of a module has the same code, whether it comes from the cache or not."""
    executable = CLIENT.compile(trivium.parse(TEXT), CompileOptions(threads=1))
    assert executable.whole().code == artifact.code
