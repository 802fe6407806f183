"""A URL goes in; its bytes come out, or one reason why there are none.

Read `fetch.py` first: redirects, robots.txt, retries and limits. `guard.py` and `_connection.py` keep every request,
whoever makes it, on public web servers; nothing that the web does is an error.
"""
