"""What networks made of the images: similarity, separation, spectra, transfer."""
