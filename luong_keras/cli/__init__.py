"""The command `luong-keras`, with one module per subcommand.

No module imports Keras before the command line is parsed.
"""
