//! A fake.
fn main() {}
