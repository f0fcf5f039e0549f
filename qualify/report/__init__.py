"""The report of a campaign as one HTML page: read from the views, drawn as SVG, written by templates.

The page decides nothing. Its decision is the one of `qualify.decision`, its figures are rows of the views,
and the SQL of every figure is printed in it, so that a reader can ask the ledger the same questions.
"""
