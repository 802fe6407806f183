"""What an answer cites: the one form of a web address, its site and its id.

In: addresses as models and people write them. Out: canonical URLs, sites, document ids. Read `addresses.py`.
"""
