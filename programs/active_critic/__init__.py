"""Active-Critic: task inference, multi-criteria scoring (McS-E) and overall scoring (OS-E)."""
