//! Tests of the order by Gittins indices.

mod beliefs;
mod idle;
mod kit;
mod promise;
mod promise_theory;
mod restart;
mod scenarios;
