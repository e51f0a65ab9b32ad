"""From text to text: the translator and its export."""
