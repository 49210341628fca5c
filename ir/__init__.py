"""The language: StableHLO's types, ops, modules and texts, in Python. Needs NumPy and ml_dtypes, and nothing else.

Importing any part of it declares all ops and provides all services of modules (`trivium.ir.services`).
"""

from trivium.ir import bytecode, custom_targets, ops, text, verifier

__all__ = ["bytecode", "custom_targets", "ops", "text", "verifier"]
