"""From files to records: lines, formats, languages, and one reader for each kind of example."""
