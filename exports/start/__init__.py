"""First steps: `demo` runs the whole product once, `init` starts a project, `doctor` says what is missing here.

A folder comes in; what the demo made in it, a new project, or a list of checks goes out. Read `demo` first.
"""
