"""Converts programs to their portable form and back. Artifacts have StableHLO's ops in a versioned form, composites in
place of CHLO's ops, and Shardy's ops unchanged, with casts around them."""

from __future__ import annotations

from trivium.ir.bytecode.casts import Cast, insert_casts, is_foreign, remove_casts
from trivium.ir.bytecode.composites import compose, is_chlo, recompose
from trivium.ir.bytecode.forms import form_of
from trivium.ir.bytecode.versions import OTHER_DIALECTS, Version
from trivium.ir.declare import Op
from trivium.ir.func import Module
from trivium.ir.ops import Composite, CustomCall


def legalized(module: Module) -> Module:
    """Returns the program in a form that artifacts can have: itself, or a converted copy."""
    if any(is_chlo(op) or is_foreign(op) for op in module.walk()):
        module.verify()  # only valid ops can be decomposed
        module = module.clone()
        compose(module)
        insert_casts(module)
    return module


def restore(module: Module, kinds: set[type], is_portable: bool) -> None:
    """Restores a program that was read from a file with ops of these classes. In an artifact, composites and custom
    calls that stand for CHLO ops become these ops, no matter which tool wrote them."""
    if Cast in kinds:
        remove_casts(module)
    if is_portable and not kinds.isdisjoint((Composite, CustomCall)):
        recompose(module)


def first_version(cls: type[Op]) -> Version:
    """Returns the first version of artifacts that can have ops of a class, in any form."""
    if cls.NAME.startswith("chlo."):
        composite = form_of(Composite)
        assert composite.revision is not None
        return composite.revision.since if cls.REGIONS else composite.introduced
    is_versioned = cls.NAME.startswith(("stablehlo.", "func.", "builtin."))
    return form_of(cls).introduced if is_versioned else OTHER_DIALECTS
