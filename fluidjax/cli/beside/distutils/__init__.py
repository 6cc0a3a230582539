"""distutils, which Python 3.12 dropped; scripts of Paddle's models parse arguments with its
strtobool.
"""
