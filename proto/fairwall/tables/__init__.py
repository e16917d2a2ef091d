"""Tables of people: from files to named columns, and from columns to groups and labels by the columns' roles."""
