"""The paper's experiments: grids of cells, their results, and the page of the results.

`studies` makes the experiments that studies.toml declares; `synthetic`, `audio` and `text` compute a cell;
`grid` runs missing cells and `results` stores them; `report` renders the page with numbers from `statistics`.
"""
