"""The client of any PJRT plugin, through its table of C functions: ours, or that of a device's vendor."""
