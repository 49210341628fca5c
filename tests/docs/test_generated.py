"""The pages that are written from the code say what the code says now."""

import pytest

for framework in ("torch", "tensorflow", "jax", "onnx"):
    pytest.importorskip(framework)

from docs.generate import DOCS, PAGES


@pytest.mark.torch
@pytest.mark.tensorflow
@pytest.mark.jax
@pytest.mark.onnx
@pytest.mark.parametrize("name", PAGES)
def test_page_is_fresh(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), f"docs/{name} is stale, expected: python -m docs.generate"
