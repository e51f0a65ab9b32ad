"""The Keras layers: attention, input-feeding cells and their drivers."""
