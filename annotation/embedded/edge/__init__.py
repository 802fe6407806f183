"""What stands between the network and argilla-server: who may hold a connection, and which requests go in.

Connections come in (`connections`, a protocol of uvicorn's); whole, small, well-meant requests go to the app
(`requests`), under their client's own address (`names`). Read `requests` first.
"""
