"""What runs in the browser: plain JavaScript modules by subject, and a style, put into the page as they are."""
