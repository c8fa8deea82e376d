"""What guarantees cost, measured: one file for each question."""
