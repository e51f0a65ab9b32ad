"""Grammar that generates the built-in English-German corpus."""
