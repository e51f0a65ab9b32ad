"""Text to ids and back: word and subword tokenizers that run in the graph."""
