"""The page's program and style: plain JavaScript modules by subject, included in the page unchanged."""
