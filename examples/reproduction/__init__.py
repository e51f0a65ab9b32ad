"""The tables of Luong, Pham and Manning (2015), trained and compared again."""
