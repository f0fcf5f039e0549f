"""Qualification: the rules as data, the decision and its explanation; the facts come from SQL views."""
