"""What helps: remedies as data (`records`), and the lines that say them (`spelling`).

Whatever decides looks at the records.  Nothing reads the lines but people and tests.
"""
