"""First steps: `demo` runs the whole product once, `init` starts a project, `doctor` says what is missing here."""
