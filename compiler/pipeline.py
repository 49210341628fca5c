"""The passes over the graph, as data, from the original module to one that can be lowered to kernels. Each stage can be
observed (`observe`), and `trivium show --stage` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trivium.compiler.dynamic import Shape
from trivium.compiler.passes.asynchronous import DoAtStart
from trivium.compiler.passes.byte_products import ByteProducts
from trivium.compiler.passes.canonicalize import Canonicalize
from trivium.compiler.passes.cse import CommonSubexpressions
from trivium.compiler.passes.dce import DeadCode
from trivium.compiler.passes.decompose import Decompose
from trivium.compiler.passes.few_channels import FewChannels
from trivium.compiler.passes.few_features import FewFeatures
from trivium.compiler.passes.first_places import FirstPlaces
from trivium.compiler.passes.fold import FoldConstants
from trivium.compiler.passes.hoist import HoistInvariants
from trivium.compiler.passes.inline import Inline
from trivium.compiler.passes.kernels import KernelsByTerms, TurnedKernels
from trivium.compiler.passes.layout import ChannelsLast
from trivium.compiler.passes.manager import Observer, Repeat, run_passes
from trivium.compiler.passes.padding import ExplicitPadding
from trivium.compiler.passes.phases import SplitPhases
from trivium.compiler.passes.quantization import ExpandQuantized
from trivium.compiler.passes.ragged_products import RaggedProducts
from trivium.compiler.passes.recognize import Recognize
from trivium.compiler.passes.refine import RefineShapes
from trivium.compiler.passes.sharding import DropSharding
from trivium.compiler.passes.shared_rows import SharedRows
from trivium.compiler.passes.skipped_rows import SkipRows
from trivium.compiler.passes.sliced_products import SlicedProducts
from trivium.compiler.passes.split_batches import SplitBatches
from trivium.compiler.passes.strided_gradients import StridedGradients
from trivium.compiler.passes.tile import Tile
from trivium.compiler.passes.tokens import EraseTokens
from trivium.compiler.passes.weight_gradients import WeightGradients
from trivium.compiler.passes.window_rows import WindowRows
from trivium.compiler.passes.winograd import Winograd
from trivium.compiler.target import Target
from trivium.ir.func import Module

CLEAN_UP = Repeat((Canonicalize(), FoldConstants(), CommonSubexpressions(), DeadCode()))

PIPELINE = (
    Inline(),
    DoAtStart(),
    EraseTokens(),
    DeadCode(),
    DropSharding(),
    ExpandQuantized(),
    Recognize(),
    Decompose(),
    CLEAN_UP,
    SharedRows(),
    CLEAN_UP,
    FirstPlaces(),
    CLEAN_UP,
    ByteProducts(),
    ChannelsLast(),
    ExplicitPadding(),
    TurnedKernels(),
    CLEAN_UP,
    HoistInvariants(),
    SlicedProducts(),
)


def inline(module: Module) -> Module:
    """Returns a copy of `module` without calls and with constants folded."""
    return run_passes(module.clone(), (Inline(), FoldConstants()))


def inline_used(module: Module) -> Module:
    """Returns the same without ops that nothing uses, or that compute what another one does."""
    return run_passes(inline(module), (DeadCode(), CommonSubexpressions()))


def specialize(module: Module, shapes: Sequence[Shape | None], values: Mapping[int, np.ndarray]) -> Module:
    """Returns a copy of `module`, which has no calls, with static shapes: see `RefineShapes`."""
    return run_passes(module.clone(), (RefineShapes(tuple(shapes), values),))


def optimize(
    module: Module,
    target: Target | None = None,
    *,
    verify: bool = False,
    observe: Observer | None = None,
    copy: bool = True,
    fast_math: bool = False,
) -> Module:
    """Returns an optimized copy of `module`, which itself does not change; or changes it, without `copy`. Without a
    target, only the passes run that are the same for every device. `fast_math`: passes may reorder floating-point
    operations."""
    own = () if target is None or target.tiles is None else (Tile(target.tiles.shared(target.threads)), CLEAN_UP)
    if target is not None and target.layouts is not None:
        gradients = WeightGradients(target.vector_bytes), StridedGradients(target)
        few = FewChannels(target.vector_bytes), FewFeatures(target.vector_bytes)
        fast = (Winograd(target),) if fast_math else ()
        own = (
            *fast,
            SplitPhases(target.vector_bytes),
            *few,
            SkipRows(),
            *gradients,
            ExplicitPadding(target),
            CLEAN_UP,
            *own,
        )
    if target is not None and target.turned_constants:
        kernels = TurnedKernels(known=True), KernelsByTerms(target)
        own = (StridedGradients(target), WindowRows(target), *kernels, CLEAN_UP, *own)
    if target is not None and target.attention and target.widest_chain("bf16"):
        # The products of attention are for matrix instructions.
        own = (SplitBatches(), CLEAN_UP, *own)
    # After calls are inlined, and before they are written out, without loops.
    ragged = () if target is None or target.tiles is None else (RaggedProducts(target.vector_registers),)
    passes = *PIPELINE[:1], *ragged, *PIPELINE[1:], *own
    return run_passes(module.clone() if copy else module, passes, verify=verify, observe=observe)
