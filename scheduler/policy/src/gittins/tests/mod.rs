//! Tests of the order by Gittins indices.

mod beliefs;
mod promise;
mod promise_theory;
mod scenarios;
