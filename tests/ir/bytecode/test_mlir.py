"""MLIR itself, as JAX ships it, as the judge of artifacts."""

from pathlib import Path

import pytest

from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.equality import difference
from trivium.ir.text import parse

ir = pytest.importorskip("jaxlib.mlir.ir")
pytestmark = pytest.mark.jax

FIXTURES = Path(__file__).parent / "fixtures"
TEXTS = {name: (FIXTURES / f"{name}.mlir").read_text() for name in ("program", "processes")}
VERSIONS = ("0.9.0", "0.11.0", "0.14.0", "0.20.0", "1.0.0", "1.5.0", "1.9.0", "1.13.7", "1.17.0")


@pytest.fixture(scope="module")
def context():
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import stablehlo

    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    return context


def theirs(context, text: str, version: str) -> bytes:
    """The artifact that MLIR writes of a text."""
    from jaxlib.mlir.dialects import stablehlo

    with context:
        return stablehlo.serialize_portable_artifact(ir.Module.parse(text), version)


def text_of(context, data: bytes) -> str:
    """The text that MLIR has of an artifact."""
    from jaxlib.mlir.dialects import stablehlo

    with context:
        return str(stablehlo.deserialize_portable_artifact(context, data))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_mlir_reads_ours(context, text, version):
    assert difference(parse(text_of(context, serialize(parse(text), version))), parse(text)) == ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_we_read_theirs(context, text, version):
    assert difference(deserialize(theirs(context, text, version)), parse(text)) == ""


@pytest.mark.parametrize("version", ["0.9.0", "1.17.0"])
def test_the_same_bytes(context, version):
    """A file of MLIR's is written again byte for byte, where it tells nothing of the order of uses."""
    data = theirs(context, TEXTS["program"], version)
    assert serialize(deserialize(data), version) == data
