"""What we change in argilla-server, each where it was not good enough."""
