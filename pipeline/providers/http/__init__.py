"""The one HTTP client for strangers' APIs: requests out, answers back, with retries, limits and a price."""
