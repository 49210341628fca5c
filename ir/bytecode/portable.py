"""What a program becomes to be portable, and what it was before. Artifacts have the ops of StableHLO in a versioned
form, composites in the place of CHLO's, and those of Shardy as they are, with casts around them."""

from __future__ import annotations

from trivium.ir.bytecode.casts import Cast, insert_casts, is_foreign, remove_casts
from trivium.ir.bytecode.composites import compose, is_chlo, recompose
from trivium.ir.bytecode.forms import form_of
from trivium.ir.bytecode.versions import OTHER_DIALECTS, Version
from trivium.ir.declare import Op
from trivium.ir.func import Module
from trivium.ir.ops import Composite


def legalized(module: Module) -> Module:
    """The program as artifacts can have it: itself, or a copy."""
    if any(is_chlo(op) or is_foreign(op) for op in module.walk()):
        module.verify()  # only what is sound can be decomposed
        module = module.clone()
        compose(module)
        insert_casts(module)
    return module


def restore(module: Module, kinds: set[type], is_portable: bool) -> None:
    """Makes a program of what was read from a file with ops of these kinds. In an artifact, composites that stand for
    ops of CHLO become these ops, whoever wrote them."""
    if Cast in kinds:
        remove_casts(module)
    if is_portable and Composite in kinds:
        recompose(module)


def first_version(cls: type[Op]) -> Version:
    """The first version of artifacts that have ops of a class, in whatever form."""
    if cls.NAME.startswith("chlo."):
        composite = form_of(Composite)
        assert composite.revision is not None
        return composite.revision.since if cls.REGIONS else composite.introduced
    is_versioned = cls.NAME.startswith(("stablehlo.", "func.", "builtin."))
    return form_of(cls).introduced if is_versioned else OTHER_DIALECTS
