"""Runs programs with XLA, as JAX ships it, to compare results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MODULE = "module @m attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{ {} }}"


def run(text: str, arrays: Sequence[np.ndarray], refine: bool = False) -> list[np.ndarray]:
    """Returns XLA's results for the function in a text. With `refine`, dynamic shapes follow from those of the
    arguments."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        module: Any = ir.Module.parse(text if "module @" in text else MODULE.format(text))
        if refine:
            module = ir.Module.parse(
                _jax.mlir.refine_polymorphic_shapes(
                    mlir_module=mlir.module_to_bytecode(module),
                    enable_shape_assertions=True,
                    validate_static_shapes=True,
                )
            )
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        executable = compiler.backend_compile_and_load(device.client, module, _jax.DeviceList((device,)), options, [])
    with jax.enable_x64(True):
        return [
            np.asarray(result) for result in executable.execute([jax.device_put(array, device) for array in arrays])
        ]
