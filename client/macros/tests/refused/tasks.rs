//! Functions that cannot be tasks: each is refused for one reason.

#[cohabit_macros::task]
fn largest<T: Ord>(of: Vec<T>) -> Option<T> {
    of.into_iter().max()
}

struct Model;

impl Model {
    #[cohabit_macros::task]
    fn train(&self, steps: u64) -> f64 {
        steps as f64
    }
}

#[cohabit_macros::task]
fn print(text: &str) {
    println!("{text}");
}

#[cohabit_macros::task]
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.sum()
}

#[cohabit_macros::task]
fn numbers(below: u64) -> impl Iterator<Item = u64> {
    0..below
}

#[cohabit_macros::task]
fn distance((x, y): (f64, f64)) -> f64 {
    x.hypot(y)
}

#[cohabit_macros::task(restarts = 3)]
fn square(number: u64) -> u64 {
    number * number
}

#[cohabit_macros::task(retry_errors = true)]
fn cube(number: u64) -> u64 {
    number * number * number
}

#[cohabit_macros::task]
#[cfg(test)]
fn tested() {}

#[cohabit_macros::task]
struct NoFunction;

#[cohabit_macros::task]
fn squares(below: u64) -> impl Stream<Item = u64> {
    stream::iter((0..below).map(|number| number * number))
}

#[cohabit_macros::task]
async fn cubes(below: u64) -> impl Send + Stream {
    stream::iter((0..below).map(|number| number * number * number))
}

#[cohabit_macros::task]
fn double(number: &cohabit::Ref<u64>) -> u64 {
    0
}

#[cohabit_macros::task]
fn half(number: Arg<u64>) -> u64 {
    0
}

fn main() {}
