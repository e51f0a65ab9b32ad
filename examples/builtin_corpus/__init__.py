"""The grammar that writes the built-in English-German corpus."""
