"""From graphs to programs: passes, fusion, kernels, buffer plan and schedule."""
