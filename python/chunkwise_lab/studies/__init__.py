"""The papers' measurement campaigns, each as data that `chunkwise study` runs again."""
