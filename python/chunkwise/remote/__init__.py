"""How are files read that have no path on this machine: by URL, or as file objects?"""
