"""What a pipe command's Python finds as ``paddle``: this folder is on its path."""
