"""Programs: the command line, tables, models of tables, pages, studies. The library imports none of them."""
