"""How much each sample counts in the loss."""
