"""Is a new version better than the one before? `judgesmith compare`, its page, and the file of rated versions."""
