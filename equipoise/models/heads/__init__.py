"""The last layer: from features to logits."""
