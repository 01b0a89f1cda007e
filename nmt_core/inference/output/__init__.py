"""From hypotheses to translations: words, spellings, copies, alignments, language models."""
