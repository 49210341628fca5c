"""Matrix products and convolutions as generated code: one template, a register-tiled micro-kernel inside cache-sized
blocks."""
