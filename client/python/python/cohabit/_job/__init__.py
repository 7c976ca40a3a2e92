"""What `cohabit.job()` is made of. Start reading in `job.py`. Nothing here is public but what `cohabit` exports."""
