"""The paper's experiments: grids of cells, the rows they give, and a page of what the rows say.

`studies` declares every study; `toy`, `race`, `audio` and `text` compute a cell; `grid` runs what is missing
and `store` keeps it. `report` goes from rows (`results`) by `summary` and `claims` to the page's template.
"""
