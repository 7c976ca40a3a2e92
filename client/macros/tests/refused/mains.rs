//! Functions that are no `main`.

mod options {
    #[cohabit_macros::main(name = "search", gpus = 2)]
    async fn main() {}
}

mod arguments {
    #[cohabit_macros::main]
    async fn main(arguments: Vec<String>) {}
}

fn main() {}
