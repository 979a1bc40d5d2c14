"""Facts, patterns and readers give causes and remedies: for all that explains reads."""
