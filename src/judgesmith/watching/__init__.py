"""Does a judge still mean what it meant? How two judges differ, and sentinel rows that are scored again and again."""
