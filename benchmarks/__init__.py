"""Benchmarks of Trivium: rows (programs and their contenders), one way to measure, and one table."""
