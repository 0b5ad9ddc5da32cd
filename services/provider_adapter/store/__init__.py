"""What is read and kept on this side: secrets by reference, media by digest."""
