"""Raw corpora to training text, many lines at a time, and the same steps again for new input.

A line goes through small steps (``steps``, ``words``, ``subwords``: cleanup, punctuation, tokenisation, truecasing,
compounds, subwords) and a pair through ``filters``. ``pipeline`` runs them over corpora, ``bundled`` over new lines.
What was set and learned stands in ``preparation.json`` (``record``).
"""
