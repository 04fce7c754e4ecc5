"""The paper's experiments: grids of cells, the rows they give, and a page of what the rows say.

`studies` makes the experiments that ``studies.toml`` declares; `toy`, `audio` and `text` compute a cell;
`grid` runs what is missing and `results` keeps it; `report` goes from rows by `summary` to the template.
"""
