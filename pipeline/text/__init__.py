"""Text goes in; what it holds comes out: URLs, sentences, words and numbers, its language, forms to compare it in.

Pure functions without files and network. Each module stands for itself; `words.py` is what most others build on.
"""
