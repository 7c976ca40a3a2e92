//! `cohabit export`: the metrics of a real cluster, as Prometheus and its tools read them.

mod prometheus;
mod scrapes;
mod server;
