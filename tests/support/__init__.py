"""Where the tests call what is inside the package, so that a changed internal call changes one file here."""
