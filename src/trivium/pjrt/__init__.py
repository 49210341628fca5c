"""The conformance kit for PJRT plugins: `python -m trivium.pjrt.check path/to/plugin.so`."""
