"""What people and other programs reach the kit by: each with an extra of its own, all upon the same verbs as everybody else."""
