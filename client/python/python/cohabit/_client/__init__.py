"""What the classes of `cohabit.client` and `cohabit.aio` are made of."""
