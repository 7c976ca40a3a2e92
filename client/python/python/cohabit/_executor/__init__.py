"""What `cohabit.Executor` is made of, in the driver and in the jobs."""
