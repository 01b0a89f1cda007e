"""Reports one can look at: self-contained HTML pages of what reranking and rescoring did."""
