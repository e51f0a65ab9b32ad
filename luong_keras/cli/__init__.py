"""The command `luong-keras`, a module a subcommand.

Nothing here imports Keras before the command line has been read.
"""
