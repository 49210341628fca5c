"""Programs with a few tokens or bytes changed at random (seeded): each raises an error of ours, or compiles. There is
never another exception, a crash or a hang."""

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import trivium
from tests.ir.ops.records import collect

TOKEN = re.compile(r"\s+|[%@#!]?[\w.$]+|->|.", re.DOTALL)
ODD = ["-1", "0", str(2**31), str(2**63), str(10**30), "nan", "1e400", "-", "\0", "é", "?", "0x", "dense<>", "{", ">"]
MUTANTS, COMPILED = 3000, 100


def texts() -> Iterator[str]:
    """Yields programs of one op each, endlessly: those of the records, each with a change."""
    generator = random.Random(0)
    programs = [TOKEN.findall(record.module().text(elide=False)) for record in collect()[::5]]
    words = [token for program in programs for token in program if not token.isspace()]
    while True:
        tokens = list(generator.choice(programs))
        for _ in range(generator.choice((1, 1, 2, 3))):
            here, there = generator.randrange(len(tokens)), generator.randrange(len(tokens))
            match generator.randrange(5):
                case 0:
                    tokens[here] = ""
                case 1:
                    tokens[here] = generator.choice(words)
                case 2:
                    tokens.insert(here, generator.choice(words))
                case 3:
                    tokens[here], tokens[there] = tokens[there], tokens[here]
                case 4:
                    tokens[here] = generator.choice(ODD)
        yield "".join(tokens)


def test_changed_texts_are_refused_or_compile() -> None:
    compiled = 0
    for _, text in zip(range(MUTANTS), texts(), strict=False):
        with suppress(trivium.Error):
            module = trivium.parse(text)
            module.verify()
            compiled += 1
            if compiled <= COMPILED:
                trivium.compile(module)
    assert compiled > COMPILED


@pytest.mark.onnx
def test_changed_onnx_files_are_refused_or_convert(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    generator = random.Random(0)
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17]>
        g (float[1, 2, 8, 8] x) => (float[1, 72] y) <float[2, 2, 3, 3] w> {
            convolved = Conv<kernel_shape = [3, 3], pads = [0, 0, 0, 0]>(x, w)
            shape = Constant<value = int64[2] {1, -1}>()
            flat = Reshape(convolved, shape)
            y = Softmax<axis = -1>(flat)
        }""")
    model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, (2, 2, 3, 3), [0.5] * 36))
    content = model.SerializeToString()
    path = tmp_path / "model.onnx"
    converted = 0
    for _ in range(500):
        changed = bytearray(content)
        for _ in range(generator.choice((1, 1, 2))):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        path.write_bytes(changed)
        with suppress(trivium.Error):
            trivium.load(path).verify()
            converted += 1
    assert 0 < converted < 500
