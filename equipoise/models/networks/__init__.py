"""Networks, from images to features."""
