//! Tests of the order by Gittins indices.

mod beliefs;
mod bounded_cost;
mod estimates;
mod idle;
mod kit;
mod known_totals;
mod lane;
mod nonsense;
mod promise;
mod promise_theory;
mod restart;
mod scenarios;
mod stops;
