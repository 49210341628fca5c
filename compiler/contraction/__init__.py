"""Products of matrices and convolutions as index arithmetic, before anything is decided for a device."""
