"""The language: StableHLO's types, ops, modules and texts, in Python. Needs NumPy and ml_dtypes, and nothing else."""
