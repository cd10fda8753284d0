"""Shards: images and labels in tar files as WebDataset has them, with an index of what lies where."""
