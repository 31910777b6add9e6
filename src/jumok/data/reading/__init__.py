"""From files to examples: lines, formats, languages, and one reader for each kind of example."""
