"""The four special tokens at the beginning of every vocabulary.

A vocabulary's size counts these tokens. The source sentence gets neither
`BOS` nor `EOS`; the decoder reads `BOS, y_1, ..., y_n` and predicts
`y_1, ..., y_n, EOS`.
"""

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"
SPECIAL_TOKENS = (PAD, UNK, BOS, EOS)
PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)
