"""A study before it begins: how many hours a sample takes, what it can find out, and which narratives are in it."""
