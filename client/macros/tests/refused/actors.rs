//! Actors that cannot be: each is refused for one reason.

struct Plain;

#[cohabit_macros::actor]
impl Plain {
    fn total(&self) -> u64 {
        0
    }
}

struct Boxed<T>(T);

#[cohabit_macros::actor]
impl<T> Boxed<T> {
    fn new(value: T) -> Self {
        Boxed(value)
    }
}

#[cohabit_macros::actor]
impl Clone for Plain {
    fn clone(&self) -> Self {
        Plain
    }
}

#[cohabit_macros::actor(gpu = 1)]
impl Plain {
    fn new() -> Self {
        Plain
    }
}

#[cohabit_macros::actor(gpus = 1.5)]
impl Plain {
    fn new() -> Self {
        Plain
    }
}

fn main() {}
