"""Tables of people: from a file to named columns, and from those to groups and labels by the columns' roles."""
