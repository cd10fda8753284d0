"""Methods that correct a trained network."""
