"""Before and between runs: what they cost, what they can show, which seeds come next."""
