"""Word alignments: links, word pairs, dictionaries and their error rate."""
