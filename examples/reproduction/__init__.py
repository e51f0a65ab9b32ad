"""Reproduction of the tables of Luong, Pham and Manning (2015)."""
