"""Which samples a batch is made of."""
