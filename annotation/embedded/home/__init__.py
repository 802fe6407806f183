"""The home folder of the embedded Argilla: secrets, lock, logs, events and versions."""
