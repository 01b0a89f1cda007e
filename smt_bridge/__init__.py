"""Neural scores in Moses pipelines: phrase-table columns, n-best features, tuning and reranking."""
