"""Results of real servers, as they came over stdio; `record` writes one file anew."""
