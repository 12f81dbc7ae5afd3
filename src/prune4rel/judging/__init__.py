"""Which labels are wrong: pure functions on arrays."""
