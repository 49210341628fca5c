"""The language: StableHLO's types, ops, modules and texts, in Python. Needs NumPy and ml_dtypes, and nothing else.

Whatever is imported of it, all ops are declared and all services of modules provided (`trivium.ir.services`).
"""

from trivium.ir import bytecode, custom_targets, ops, text, verifier

__all__ = ["bytecode", "custom_targets", "ops", "text", "verifier"]
