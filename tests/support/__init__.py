"""Where the tests call what is inside the package, so that a changed internal call changes one file here.

`asking` asks selectors questions, `data` makes designs and uses their verbs, `sources` has one matrix as
every kind of data, `process` runs code in a fresh interpreter.
"""
