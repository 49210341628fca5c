"""Whole programs: roles and names, parameters as arguments, updated buffers, structures, numbers, randomness."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

import trivium
from tests.importers.pytorch.models import Cnn
from trivium.ir.func import Module

pytestmark = pytest.mark.torch


def attributes(entries) -> list[tuple[str, str]]:
    return [(entry["trivium.role"], entry.get("trivium.name", "")) for entry in entries]


def roles(module: Module) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns role and name of each argument and of each result."""
    return attributes(module.main.arg_attrs), attributes(module.main.res_attrs)


def call(module: Module, *arguments) -> list[np.ndarray]:
    given = [x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in arguments]
    return [np.asarray(x) for x in trivium.evaluate(module, *given)]


def test_parameters_are_constants_that_share_memory() -> None:
    linear = nn.Linear(3, 2)
    module = trivium.from_torch(linear, (torch.ones(1, 3),))
    assert roles(module) == ([("input", "input")], [("output", "")])
    constants = [op.value.array for op in module.main.body.block if op.NAME == "stablehlo.constant"]
    assert any(np.shares_memory(array, linear.weight.detach().numpy()) for array in constants)


def test_parameters_are_arguments() -> None:
    linear, x = nn.Linear(3, 2), torch.ones(1, 3)
    module = trivium.from_torch(linear, (x,), parameters="arguments")
    assert roles(module)[0] == [("parameter", "weight"), ("parameter", "bias"), ("input", "input")]
    np.testing.assert_allclose(call(module, linear.weight, linear.bias, x)[0], linear(x).detach(), rtol=1e-6)


def test_updated_buffers_are_results() -> None:
    norm, x = nn.BatchNorm1d(3).train(), torch.randn(4, 3)
    module = trivium.from_torch(norm, (x,))
    arguments, results = roles(module)
    names = ["running_mean", "running_var", "num_batches_tracked"]
    assert arguments == [*(("buffer", name) for name in names), ("input", "input")]
    assert results == [*(("buffer", name) for name in names), ("output", "")]
    found = call(module, *norm.buffers(), x)
    expected = norm(x)
    for ours, theirs in zip(found, [*norm.buffers(), expected], strict=True):
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-6)


def test_a_mutated_input_is_a_result() -> None:
    class Writes(nn.Module):
        def forward(self, x):
            x[1:].mul_(2)
            return x.sum()

    module = trivium.from_torch(Writes(), (torch.ones(3),))
    assert roles(module)[1] == [("input", "x"), ("output", "")]
    written, total = call(module, torch.ones(3))
    np.testing.assert_array_equal(written, [1, 2, 2])
    assert total == 5


def test_structures_and_keywords_keep_their_names() -> None:
    class Structured(nn.Module):
        def forward(self, pair, *, scale=1.0, bias=None):
            return {"sum": pair[0] + pair[1] * scale, "bias": [bias]}

    module = trivium.from_torch(Structured(), ((torch.ones(2), torch.ones(2)),), {"scale": 3.0, "bias": torch.ones(1)})
    assert roles(module)[1] == [("output", "['sum']"), ("output", "['bias'][0]")]
    assert [name for _, name in roles(module)[0]] == ["pair_0", "pair_1", "bias"]
    np.testing.assert_array_equal(call(module, torch.ones(2), torch.ones(2), torch.ones(1))[0], [4, 4])


def test_inputs_of_every_kind() -> None:
    class Mixed(nn.Module):
        def forward(self, scalar, empty, strided):
            return scalar * strided, empty.sum(), strided.t().reshape(-1)

    inputs = (torch.tensor(2.0), torch.ones(0, 3), torch.arange(6.0).reshape(2, 3).t())
    module = trivium.from_torch(Mixed(), inputs)
    for ours, theirs in zip(call(module, *inputs), Mixed()(*inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_symbolic_sizes_are_specialized_at_the_arguments() -> None:
    class Flattens(nn.Module):
        def forward(self, x):
            return x[1:].reshape(-1) * x.shape[0]

    batch = torch.export.Dim("batch", min=3, max=16)
    program = torch.export.export(Flattens(), (torch.ones(4, 3),), dynamic_shapes=({0: batch},))
    assert trivium.from_torch(program).main.function_type.inputs[0].shape == (None, 3)
    module = trivium.from_torch(program, (torch.ones(8, 3),))
    assert module.main.function_type.results[0].shape == (21,)
    np.testing.assert_array_equal(call(module, torch.ones(8, 3))[0], np.full(21, 8.0))


def expect_near(result: np.ndarray, expected: torch.Tensor) -> None:
    """Equal except for the order of sums, whose terms, all below 1, may cancel."""
    np.testing.assert_allclose(result, expected.detach(), rtol=1e-6, atol=2e-7)


def test_traced_graph() -> None:
    linear, x = nn.Linear(3, 2), torch.ones(1, 3)
    module = trivium.from_torch(torch.fx.symbolic_trace(linear), (x,))
    expect_near(call(module, x)[0], linear(x))


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 the beginning of an archive"])
def test_files_that_are_not_archives(content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    (tmp_path / "wrong.pt2").write_bytes(content)
    with pytest.raises(trivium.Error, match="it is not a zip archive"):
        trivium.load(tmp_path / "wrong.pt2")
    assert not capfd.readouterr().err


def test_exported_file(tmp_path: Path) -> None:
    linear, x = nn.Linear(3, 2), torch.ones(1, 3)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(linear, (x,)), path)
    expect_near(call(trivium.load(path), x)[0], linear(x))


def test_draws_take_and_give_the_generators_state() -> None:
    module = trivium.from_torch(Cnn(dropout=0.5).train(), (torch.ones(2, 1, 8, 8),))
    arguments, results = roles(module)
    assert arguments[-1] == results[-1] == ("state", "random")


class Noise(nn.Module):
    def forward(self, x):
        return torch.rand_like(x), torch.randn_like(x), torch.randint(3, 7, x.shape), torch.randperm(x.numel())


def test_draws_have_their_distributions() -> None:
    x = torch.empty(20000)
    module = trivium.from_torch(Noise(), (x,))
    uniform, normal, integers, permutation, state = call(module, x, np.array([1, 2], np.uint64))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert set(np.unique(integers)) == {3, 4, 5, 6}
    assert sorted(permutation) == list(range(20000))
    again = call(module, x, state)
    assert not np.array_equal(uniform, again[0])


def test_dropout_keeps_the_mean() -> None:
    x = torch.ones(20000)
    module = trivium.from_torch(nn.Dropout(0.25).train(), (x,))
    dropped, _ = call(module, x, np.array([3, 0], np.uint64))
    assert abs((dropped == 0).mean() - 0.25) < 0.02
    np.testing.assert_allclose(dropped[dropped != 0], 1 / 0.75, rtol=1e-6)


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.offset = nn.Parameter(torch.ones(40, 40)), nn.Parameter(torch.ones(40, 40))

    def forward(self, x):
        return x @ self.weight + self.offset


def test_a_compiled_program_keeps_the_weights_of_its_compilation() -> None:
    model, x = Affine(), torch.ones(40, 40)
    run = trivium.compile(trivium.from_torch(model, (x,)))
    with torch.no_grad():
        model.weight.mul_(5)
        model.offset.mul_(7)
    np.testing.assert_array_equal(run(x.numpy())[0], np.full((40, 40), 41, np.float32))


class Factorized(nn.Module):
    def forward(self, x):
        positive = x @ x.mT + torch.eye(3)
        return torch.linalg.inv(x), torch.linalg.cholesky(positive), torch.linalg.solve(positive, x[:, 0])


def test_checks_of_factorizations_are_not_inputs_or_results() -> None:
    x = torch.tensor([[2.0, 1, 0], [0, 3, 1], [1, 0, 4]])
    module = trivium.from_torch(Factorized(), (x,))
    assert len(module.main.arguments) == 1
    for found, expected in zip(trivium.compile(module)(x.numpy()), Factorized()(x), strict=True):
        torch.testing.assert_close(torch.tensor(found), expected)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float64", "int8", "bool"])
@pytest.mark.parametrize("turned", [False, True], ids=("whole", "view"))
def test_tensors_are_arguments(name: str, turned: bool) -> None:
    """Also of types that NumPy itself does not have."""
    x = (3 * torch.randn(3, 5)).to(getattr(torch, name))
    x = x.t() if turned else x

    class Widened(nn.Module):
        def forward(self, x):
            return x.to(torch.float64)

    module = trivium.from_torch(Widened(), (x,))
    for found in (trivium.compile(module)(x), trivium.evaluate(module, x)):
        np.testing.assert_array_equal(np.asarray(found)[0], x.to(torch.float64).numpy())


def test_tensors_with_gradients_are_refused() -> None:
    """They would be lost without a word."""
    x = torch.ones(2, dtype=torch.bfloat16)
    module = trivium.from_torch(nn.Tanh(), (x,))
    with pytest.raises(trivium.Error, match="requires grad"):
        trivium.compile(module)(x.requires_grad_())
