"""From text to text: the translator, its export and its client."""
