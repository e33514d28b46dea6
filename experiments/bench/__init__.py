"""What measures results, run from a checkout."""
