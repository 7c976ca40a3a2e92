//! Methods that no other process can call: each is refused for one reason.

struct Generic;

#[cohabit_macros::actor]
impl Generic {
    fn new() -> Self {
        Generic
    }

    fn add<T: Into<u64>>(&mut self, by: T) {
        let _ = by.into();
    }
}

struct Consumed;

#[cohabit_macros::actor]
impl Consumed {
    fn new() -> Self {
        Consumed
    }

    fn finish(self) {}
}

struct Borrows;

#[cohabit_macros::actor]
impl Borrows {
    fn new() -> Self {
        Borrows
    }

    fn print(&self, text: &str) {
        println!("{text}");
    }
}

struct Pattern;

#[cohabit_macros::actor]
impl Pattern {
    fn new() -> Self {
        Pattern
    }

    fn move_to(&mut self, (x, y): (u32, u32)) {
        let _ = x + y;
    }
}

struct Stops;

#[cohabit_macros::actor]
impl Stops {
    fn new() -> Self {
        Stops
    }

    fn stop(&mut self) {}
}

struct Retried;

#[cohabit_macros::actor]
impl Retried {
    #[retry]
    fn new() -> Self {
        Retried
    }
}

struct Itself;

#[cohabit_macros::actor]
impl Itself {
    fn new() -> Self {
        Itself
    }

    fn other(&self) -> Option<Self> {
        None
    }
}

fn main() {}
