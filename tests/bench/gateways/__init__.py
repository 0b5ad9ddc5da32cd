"""What `bench_gateway` is made of: the provider, the load, and everything that can stand between them."""
