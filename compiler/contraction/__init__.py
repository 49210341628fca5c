"""Matrix products and convolutions as index arithmetic, before any decision for a device."""
