"""distutils went with Python 3.12; scripts of Paddle's models read their arguments by its
strtobool.
"""
