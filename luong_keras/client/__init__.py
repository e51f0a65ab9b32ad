"""What asks a served translator, without Keras."""
