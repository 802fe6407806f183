"""HTTP to other people's APIs: an endpoint and a request in, a JSON body or a ProviderError out.

Read `client` first: `ApiClient.send` goes through the API's `Gate`, sends with `transfer`, and asks `failure` whether
and when another attempt is worth it. Nothing here knows narratives, answers or models.
"""
