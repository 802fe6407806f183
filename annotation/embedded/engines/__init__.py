"""The search engines that argilla-server is given, and what they need in its database."""
