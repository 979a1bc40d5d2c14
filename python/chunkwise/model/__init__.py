"""What would another chunk shape, filter or cache cost, by arithmetic on shapes?"""
