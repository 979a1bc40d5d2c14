"""How are files opened: diagnosis, handles, objects, what is on storage?"""
